"""Finds the packages of a project by their manifests, and the requirement that each one's tests pass."""

import os
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import msgspec

from holdfast.analysis.packages import own_folders, read_manifest, walk_folders
from holdfast.core.checks import CheckKind
from holdfast.core.data_files import load_data

MOST_PACKAGES, MOST_GLOBS, LONGEST_NAME = 40, 120, 64
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
# `test:=` is a variable of make.
_TEST_TARGET = re.compile(r"^test\s*:(?!=)", re.MULTILINE)
_OTHER_SOURCES = ("c", "cc", "cpp", "h", "hpp", "cs", "sh", "swift")


class PackageKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of `packages.toml`."""

    manifests: list[str]
    run: str
    sources: str
    requires: str = ""
    """A word that the manifest must contain."""
    launchers: dict[str, str] = {}
    """Lock file → the words before `run`; the empty name is for none of them. A workspace has one lock file, at its root."""
    inside: bool = True
    """Whether it is a package inside another one of the same sources, too."""
    script: str = ""
    """A script that the manifest must define."""


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    package: list[PackageKind]


class _Manifest(msgspec.Struct):
    scripts: dict[str, str] = {}


class Package(NamedTuple):
    """A folder that is tested as a whole, relative to the project; empty is the project itself."""

    folder: str
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
    found: list[Package] = []
    for folder in walk_folders(project):
        found += _packages_in(project, folder, found)
    if _has_test_target(project) and all(package.folder for package in found):
        found.append(Package("", "make test", frozenset(_OTHER_SOURCES).union(*(k.sources.split() for k in _kinds()))))
    return sorted(found, key=lambda one: (one.folder.count("/"), one.folder))[:MOST_PACKAGES]


def _has_test_target(path: str) -> bool:
    return any(_TEST_TARGET.search(read_manifest(os.path.join(path, name))) for name in _MAKEFILES)


def _packages_in(project: str, folder: str, outer: list[Package]) -> Iterator[Package]:
    """At most one for each kind of source, so that a manifest and a lock file make one package."""
    path = os.path.join(project, folder)
    known: set[str] = set()
    for kind in _kinds():
        sources = frozenset(kind.sources.split())
        held = not kind.inside and any(one.sources & sources and _is_inside(folder, one.folder) for one in outer)
        if known.isdisjoint(sources) and not held and _is_tested(kind, path):
            known |= sources
            yield Package(folder, f"{_launcher(kind.launchers, project, folder)} {kind.run}".lstrip(), sources)


def _is_tested(kind: PackageKind, path: str) -> bool:
    texts = [
        read_manifest(os.path.join(path, name)) for name in kind.manifests if os.path.isfile(os.path.join(path, name))
    ]
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


def _launcher(launchers: dict[str, str], project: str, folder: str) -> str:
    for above in (folder, *_folders_above(folder)):
        path = os.path.join(project, above)
        if found := next(
            (run for lock, run in launchers.items() if lock and os.path.isfile(os.path.join(path, lock))), ""
        ):
            return found
    return launchers.get("", "")


def _folders_above(folder: str) -> Iterator[str]:
    while folder:
        folder = folder.rpartition("/")[0]
        yield folder


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
    name = f"tests_green_{where}" + (f"_{min(package.sources)}" if len(same) > 1 else "")
    return name if len(name) <= LONGEST_NAME else f"tests_green_{name[len(name) - LONGEST_NAME + 12 :]}"


def _requirement(package: Package, packages: list[Package], project: str) -> dict[str, Any]:
    paths = _own_globs(package, packages, project)
    evidence = {"check": CheckKind.TEST.value, "after_edit": paths, "whole": True, "run": package.suggestion}
    return {
        "enabled": True,
        "type": "evidence",
        "paths": paths,
        "evidence": [evidence],
        "description": f"Tests of {package.folder or 'the project'} passed after the last edit.",
    }


def _own_globs(package: Package, packages: list[Package], project: str) -> list[str]:
    """Globs of its sources, without those of packages inside it that have the same kind of sources."""
    inner = [one.folder for one in packages if one.sources & package.sources and _is_inside(one.folder, package.folder)]
    prefix = f"{package.folder}/" if package.folder else ""
    endings = sorted(package.sources)
    if not inner:
        return [f"{prefix}**/*.{ending}" for ending in endings]
    # The deepest folders are left out first: that they need no proof is better than proof of other packages.
    folders = sorted(_outer_folders(project, package.folder, inner), key=lambda one: (one.count("/"), one))
    globs = [f"{prefix or './'}*.{ending}" for ending in endings]
    return [*globs, *(f"{folder}/**/*.{ending}" for folder in folders for ending in endings)][:MOST_GLOBS]


def _outer_folders(project: str, folder: str, inner: list[str]) -> list[str]:
    """The largest folders below one that hold no inner package."""
    found: list[str] = []
    for name in own_folders(os.path.join(project, folder)):
        path = os.path.join(folder, name)
        if path in inner:
            continue
        holds = any(_is_inside(one, path) for one in inner)
        found += _outer_folders(project, path, inner) if holds else [path]
    return found


def _is_inside(path: str, folder: str) -> bool:
    return path != folder and (not folder or path.startswith(f"{folder}/"))
