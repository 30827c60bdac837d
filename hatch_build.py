"""Build step of the wheel: compiles native/hook.c, which ships as the script `holdfast-hook`, the library of redaction, which
ships as `holdfast/analysis/redact/libanchors.so`, and the rules of redaction, which ship as `rules.json` next to it.

Set HOLDFAST_TARGET (see native/build.py) to build for another platform, or HOLDFAST_TARGET=none to leave it out.
Where they cannot be compiled the wheel is built without them: `src/holdfast/hook.py` and `ahocorasick-rs` do the same.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import tempfile
import tomllib
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
        if version != "editable":
            self._ship_tables(build_data)
        builder = load_builder(Path(self.root))
        self._ship_rules(builder, version, build_data)
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

    def _ship_rules(self, builder, version: str, build_data: dict) -> None:
        """The rules of redaction as one document that loads quickly."""
        compiler = builder.rule_compiler()
        compiled = compiler.COMPILED if version == "editable" else Path(self.root) / "build" / compiler.COMPILED.name
        compiled.parent.mkdir(exist_ok=True)
        compiler.write_rules(compiled)
        if version != "editable":
            build_data["force_include"][str(compiled)] = f"holdfast/analysis/redact/{compiled.name}"

    def _ship_tables(self, build_data: dict) -> None:
        """TOML beside the code as JSON, which is read in a hundredth of the time (`core/data_files.py`)."""
        source = Path(self.root) / "src"
        made = Path(tempfile.mkdtemp(prefix="holdfast-tables-"))
        tables = [path for path in source.glob("holdfast/**/*.toml") if "redact" not in path.parts]
        for number, table in enumerate(sorted(tables)):
            compiled = made / f"{number}.json"
            compiled.write_text(json.dumps(tomllib.loads(table.read_text("utf-8"))))
            build_data["force_include"][str(compiled)] = str(table.relative_to(source).with_suffix(".json"))

    def _ship_library(self, library: Path, version: str, build_data: dict) -> None:
        """An editable install runs from the source tree, so the library is put there."""
        if version == "editable":
            shutil.copy(library, Path(self.root) / "src" / "holdfast" / "analysis" / "redact" / library.name)
        else:
            build_data["force_include"][str(library)] = f"holdfast/analysis/redact/{library.name}"
