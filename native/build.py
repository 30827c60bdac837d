"""Build what is native: `python native/build.py OUT [TARGET]`, for this machine or for one of TARGETS.

OUT is the hook client (hook.c). The library (anchors.c, tables.c, spellings.c, stamps.c) is written next to it, and rules.h,
which holds what the library and Python share: made from src/holdfast/analysis/redact/rules/*.toml.

The compiler comes from the `ziglang` package, so the same command works on every host and for every target. The result
is static (musl) on Linux, so one binary runs on every distribution.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "hook.c"
LIBRARY_SOURCES = tuple(HERE / name for name in ("anchors.c", "tables.c", "spellings.c", "stamps.c"))
HEADERS = tuple(HERE / name for name in ("bytes.h", "guards.h", "search.h", "shorten.h", "values.h"))
LIBRARY = "libanchors.so"
HEADER = "rules.h"
COMPILER = HERE.parent / "src" / "holdfast" / "analysis" / "redact" / "rule_compiler.py"
VERSION_FILE = HERE.parent / "src" / "holdfast" / "__init__.py"

# target of the compiler -> platform part of the wheel's tag
TARGETS = {
    "x86_64-linux-musl": "manylinux_2_17_x86_64.musllinux_1_1_x86_64",
    "aarch64-linux-musl": "manylinux_2_17_aarch64.musllinux_1_1_aarch64",
    "x86_64-macos": "macosx_11_0_x86_64",
    "aarch64-macos": "macosx_11_0_arm64",
}
FLAGS = ["-std=gnu11", "-Os", "-s", "-Wall", "-Wextra", "-Werror", "-ffunction-sections", "-Wl,--gc-sections"]
LIBRARY_FLAGS = [
    "-std=gnu11",
    "-O3",
    "-s",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fno-sanitize=all",
    "-ffreestanding",
    "-nostdlib",
]
LIBRARY_FLAGS += ["-shared", "-fPIC"]
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


class CannotBuildError(Exception):
    """The native hook client cannot be built here."""


def host_target() -> str:
    machine = platform.machine().lower()
    system = {"Linux": "linux-musl", "Darwin": "macos"}.get(platform.system(), platform.system().lower())
    return f"{MACHINES.get(machine, machine)}-{system}"


def version() -> str:
    return re.search(r'^__version__ = "([^"]+)"', VERSION_FILE.read_text(), re.MULTILINE)[1]


def rule_compiler() -> Any:
    """The module, without the package around it: the wheel is built where its dependencies are not installed."""
    spec = importlib.util.spec_from_file_location("rule_compiler", COMPILER)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def header() -> str:
    rules = rule_compiler().read_sources()
    limits, words = rules["limits"], rules["words"]
    sizes = {name.upper(): value for name, value in limits.items() if isinstance(value, int)}
    guards = {f"GUARD_{name.upper()}": value for name, value in limits["guards"].items()}
    entities = ", ".join(f"{{{as_c('&' + name + ';')}, {ord(sign)}}}" for name, sign in rules["entities"].items())
    return "\n".join(
        (
            "/* Made by native/build.py from the rules of redaction. */",
            "#pragma once",
            "#include <stdint.h>",
            "#define SHARED __attribute__((unused)) static const",
            "enum { " + ", ".join(f"{name} = {value}" for name, value in {**sizes, **guards}.items()) + " };",
            f"SHARED char NO_VALUE[] = {as_c(words['no_value_sign'][0])}, BEFORE_QUOTED[] = {as_c(words['before_quoted'][0])};",
            f"SHARED uint8_t LEADING[] = {as_list(words['leading'])}, BETWEEN[] = {as_list(words['between'])};",
            f"SHARED char *const ESCAPE_SIGNS[] = {{{', '.join(map(as_c, words['escape_sign']))}}};",
            f"SHARED struct {{ const char *word; uint8_t byte; }} ENTITIES[] = {{{entities}}};",
            "",
        )
    )


def as_c(text: str) -> str:
    return json.dumps(text)


def as_list(words: list[str]) -> str:
    """Each word after its length; the string's own zero ends the list."""
    return " ".join(f'"\\{len(word):o}" {as_c(word)}' for word in words)


def place(target: str) -> Path:
    """Where the client of this state of the source lies once it is built: an installation and the tests share it."""
    sources = (SOURCE, *LIBRARY_SOURCES, *HEADERS, Path(__file__), VERSION_FILE)
    state = hashlib.sha256(b"".join(file.read_bytes() for file in sources) + header().encode())
    return HERE.parent / "build" / "native" / f"{target}-{state.hexdigest()[:16]}" / "holdfast-hook"


def commands(out: Path, target: str) -> list[list[str]]:
    static = ["-static"] if target.endswith("-musl") else []
    define = f'-DHOLDFAST_VERSION="{version()}"'
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", target]
    return [
        [*compiler, *static, *FLAGS, define, str(SOURCE), "-o", str(out)],
        [*compiler, *LIBRARY_FLAGS, f"-I{out.parent}", *map(str, LIBRARY_SOURCES), "-o", str(out.with_name(LIBRARY))],
    ]


def build(out: Path, target: str | None = None) -> Path:
    """Compile into `out`. The compiler's cache stays in this tree: nothing is written to HOME."""
    target = target or host_target()
    if target not in TARGETS:
        raise CannotBuildError(f"no target for {target}")
    cache = place(target).parent.parent / "zig-cache"
    cache.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(cache), "ZIG_LOCAL_CACHE_DIR": str(cache)}
    out.with_name(HEADER).write_text(header())
    for command in commands(out, target):
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CannotBuildError(done.stderr.strip() or f"compiler exit {done.returncode}")
    return out


def build_once(target: str) -> Path:
    """Compiles where this state of the source has not been compiled yet. Two that do so at once do not disturb one another."""
    client = place(target)
    if client.exists() and client.with_name(LIBRARY).exists():
        return client
    partial = client.parent / f"partial-{os.getpid()}" / client.name
    partial.parent.mkdir(parents=True, exist_ok=True)
    build(partial, target)
    partial.with_name(LIBRARY).replace(client.with_name(LIBRARY))
    partial.with_name(HEADER).replace(client.with_name(HEADER))
    partial.replace(client)
    partial.parent.rmdir()
    return client


def main() -> int:
    if len(sys.argv) not in (2, 3):
        print(__doc__, "targets:", *TARGETS, sep="\n  ")
        return 2
    try:
        out = build(Path(sys.argv[1]).resolve(), *sys.argv[2:])
    except CannotBuildError as error:
        print(f"holdfast-hook was not built: {error}", file=sys.stderr)
        return 1
    print(f"{out}: {out.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
