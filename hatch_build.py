"""Build step of the wheel: compile native/hook.c and ship it as the script `holdfast-hook`; and the library of redaction, which
ships as `holdfast/redact/libanchors.so`.

Set HOLDFAST_TARGET (see native/build.py) to build for another platform, or HOLDFAST_TARGET=none to leave it out.
Where they cannot be compiled the wheel is built without them: `src/holdfast/hook.py` and `ahocorasick-rs` do the same.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SCRIPT = "holdfast-hook"


def load_builder(root: Path):
    spec = importlib.util.spec_from_file_location("holdfast_native_build", root / "native" / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class NativeHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict) -> None:
        if self.target_name != "wheel":
            return
        builder = load_builder(Path(self.root))
        target = os.environ.get("HOLDFAST_TARGET") or builder.host_target()
        try:
            client = builder.build_once(target)
        except builder.CannotBuildError as error:
            self.app.display_warning(f"holdfast-hook is left out, hooks will run hook.py instead: {error}")
            return
        build_data["shared_scripts"][str(client)] = SCRIPT
        self._ship_library(client.with_name(builder.LIBRARY), version, build_data)
        build_data["tag"] = f"py3-none-{builder.TARGETS[target]}"
        build_data["pure_python"] = False

    def _ship_library(self, library: Path, version: str, build_data: dict) -> None:
        """An editable install runs from the source tree, so the library is put there."""
        if version == "editable":
            shutil.copy(library, Path(self.root) / "src" / "holdfast" / "redact" / library.name)
        else:
            build_data["force_include"][str(library)] = f"holdfast/redact/{library.name}"
