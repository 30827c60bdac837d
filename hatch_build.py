"""Build step of the wheel: compile native/hook.c and ship it as the script `holdfast-hook`.

Set HOLDFAST_TARGET (see native/build.py) to build for another platform, or HOLDFAST_TARGET=none to leave it out.
Where it cannot be compiled the wheel is built without it, and `src/holdfast/hook.py` does the same work.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SCRIPT = "holdfast-hook"


def load_builder(root: Path):
    spec = importlib.util.spec_from_file_location("holdfast_native_build", root / "native" / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class NativeHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict) -> None:  # noqa: ARG002 - hatchling names it
        if self.target_name != "wheel":
            return
        builder = load_builder(Path(self.root))
        target = os.environ.get("HOLDFAST_TARGET") or builder.host_target()
        client = builder.place(target)
        client.parent.mkdir(parents=True, exist_ok=True)
        try:
            builder.build(client, target)
        except builder.CannotBuildError as error:
            self.app.display_warning(f"holdfast-hook is left out, hooks will run hook.py instead: {error}")
            return
        build_data["shared_scripts"][str(client)] = SCRIPT
        build_data["tag"] = f"py3-none-{builder.TARGETS[target]}"
        build_data["pure_python"] = False
