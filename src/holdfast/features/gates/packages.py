"""Finds the packages of a project by their manifests, and the requirement that each one's tests pass."""

import os
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import msgspec

from holdfast.core.data_files import load_data
from holdfast.paths import open_regular

DEEPEST, MOST_FOLDERS, MOST_PACKAGES, MOST_GLOBS = 4, 2_000, 20, 40
LARGEST_MANIFEST = 1 << 20
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
# `test:=` is a variable of make.
_TEST_TARGET = re.compile(r"^test\s*:(?!=)", re.MULTILINE)
_MAKE = "make test*"
_OTHER_SOURCES = ("c", "cc", "cpp", "h", "hpp", "cs", "sh", "swift")
_LOCKS = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lockb": "bun", "bun.lock": "bun"}
_NOT_OURS = frozenset(
    "node_modules vendor third_party target dist build out venv env site-packages testdata fixtures __pycache__".split()
)


class PackageKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of `packages.toml`."""

    manifests: list[str]
    commands: list[str]
    run: str
    sources: str
    requires: str = ""
    """A word that the manifest must contain."""
    script: str = ""
    """A script that the manifest must define."""


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    package: list[PackageKind]


class _Manifest(msgspec.Struct):
    scripts: dict[str, str] = {}


class Package(NamedTuple):
    """A folder that is tested as a whole, relative to the project; empty is the project itself."""

    folder: str
    commands: tuple[str, ...]
    run: str
    sources: frozenset[str]

    @property
    def suggestion(self) -> str:
        return f"cd {self.folder} && {self.run}" if self.folder else self.run


@cache
def _kinds() -> list[PackageKind]:
    return load_data(__file__, "packages", _Table).package


def find_packages(project: str) -> list[Package]:
    """The packages with tests, the project itself first."""
    found = [package for folder in _folders(project) for package in _packages_in(project, folder)]
    if _has_test_target(project) and all(package.folder for package in found):
        found.append(
            Package("", (_MAKE,), "make test", frozenset(_OTHER_SOURCES).union(*(k.sources.split() for k in _kinds())))
        )
    return sorted(found, key=lambda one: (one.folder.count("/"), one.folder))[:MOST_PACKAGES]


def _has_test_target(path: str) -> bool:
    return any(_TEST_TARGET.search(_read(os.path.join(path, name))) for name in _MAKEFILES)


def _folders(project: str) -> Iterator[str]:
    waiting, seen = [""], 0
    while waiting and seen < MOST_FOLDERS:
        folder = waiting.pop(0)
        seen += 1
        yield folder
        if folder.count("/") + bool(folder) < DEEPEST:
            waiting += [os.path.join(folder, name) for name in _own_folders(os.path.join(project, folder))]


def _own_folders(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            names = [one.name for one in entries if one.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(name for name in names if not name.startswith(".") and name not in _NOT_OURS)


def _packages_in(project: str, folder: str) -> Iterator[Package]:
    """At most one for each kind of source, so that a manifest and a lock file make one package."""
    path = os.path.join(project, folder)
    known: set[str] = set()
    for kind in _kinds():
        sources = frozenset(kind.sources.split())
        if known.isdisjoint(sources) and _is_tested(kind, path):
            known |= sources
            yield _as_package(kind, path, folder)


def _is_tested(kind: PackageKind, path: str) -> bool:
    texts = [_read(os.path.join(path, name)) for name in kind.manifests if os.path.isfile(os.path.join(path, name))]
    if kind.script:
        return any(_has_script(text, kind.script) for text in texts)
    return any(kind.requires in text for text in texts)


def _has_script(text: str, name: str) -> bool:
    try:
        script = msgspec.json.decode(text or "{}", type=_Manifest).scripts.get(name, "")
    except msgspec.DecodeError:
        return False
    # What `npm init` writes into a package without tests.
    return bool(script) and "no test specified" not in script


def _as_package(kind: PackageKind, path: str, folder: str) -> Package:
    runner = next((name for lock, name in _LOCKS.items() if os.path.isfile(os.path.join(path, lock))), "npm")
    commands = [command.format(runner=runner) for command in kind.commands]
    if _has_test_target(path):
        commands.append(_MAKE)
    return Package(folder, tuple(commands), kind.run.format(runner=runner), frozenset(kind.sources.split()))


def _read(path: str) -> str:
    try:
        with open(path, "rb", opener=open_regular) as file:
            return file.read(LARGEST_MANIFEST).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


# ── what each of them requires ───────────────────────────────────────────────────────────────────────────────────────


def package_requirements(project: str) -> dict[str, dict[str, Any]]:
    """One requirement for each package: its sources need a passing run of its whole suite."""
    packages = find_packages(project)
    return {_requirement_name(one, packages): _requirement(one, packages, project) for one in packages}


def _requirement_name(package: Package, packages: list[Package]) -> str:
    if package is packages[0]:
        return "tests_green"
    where = re.sub(r"\W+", "_", package.folder) or "root"
    same = [one for one in packages if one.folder == package.folder]
    return f"tests_green_{where}" + (f"_{min(package.sources)}" if len(same) > 1 else "")


def _requirement(package: Package, packages: list[Package], project: str) -> dict[str, Any]:
    paths = _own_globs(package, packages, project)
    evidence = {"command": list(package.commands), "after_edit": paths, "whole": True, "run": package.suggestion}
    return {
        "enabled": True,
        "type": "evidence",
        "paths": paths,
        "evidence": [evidence],
        "description": f"Tests of {package.folder or 'the project'} passed after the last edit.",
    }


def _own_globs(package: Package, packages: list[Package], project: str) -> list[str]:
    """Globs of its sources, without those of packages inside it that have the same kind of sources."""
    inner = [
        one.folder for one in packages if one.sources == package.sources and _is_inside(one.folder, package.folder)
    ]
    prefix = f"{package.folder}/" if package.folder else ""
    whole = [f"{prefix}**/*.{ending}" for ending in sorted(package.sources)]
    if not inner:
        return whole
    folders = _outer_folders(project, package.folder, inner)
    globs = [f"{prefix}*.{ending}" for ending in sorted(package.sources)]
    globs += [f"{folder}/**/*.{ending}" for folder in folders for ending in sorted(package.sources)]
    return globs if len(globs) <= MOST_GLOBS else whole


def _outer_folders(project: str, folder: str, inner: list[str]) -> list[str]:
    """The largest folders below one that hold no inner package."""
    found: list[str] = []
    for name in _own_folders(os.path.join(project, folder)):
        path = os.path.join(folder, name)
        if path in inner:
            continue
        holds = any(_is_inside(one, path) for one in inner)
        found += _outer_folders(project, path, inner) if holds else [path]
    return found


def _is_inside(path: str, folder: str) -> bool:
    return path != folder and (not folder or path.startswith(f"{folder}/"))
