"""Which changed files are validated: by checks that cover them, or by the commands that an area's settings name."""

import fnmatch
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.ports import Doc
from holdfast.core.shell.analysis import Ran, analyse_command
from holdfast.features.project.check_results import CheckRun, on_branch, validates

Area = Mapping[str, Any]


def proven_areas(event: Event, patterns: Mapping[str, Iterable[str]]) -> list[str]:
    """Areas whose own command is part of this call, where it is known that it ran and succeeded."""
    data = event.data
    analysis = analyse_command(data.command, data.exit_code, data.output, data.error)
    texts = [" ".join(one.words) for one in analysis.commands if one.ran is Ran.YES and one.exit_code == 0]
    return [
        name
        for name, globs in patterns.items()
        if any(fnmatch.fnmatchcase(text, glob) for text in texts for glob in globs)
    ]


def area_of(path: str, areas: Mapping[str, Area]) -> str:
    """The first area that names the path; empty when none does."""
    for name, area in areas.items():
        if any(within(path, glob) for glob in area.get("paths") or ()):
            return name
    return ""


def within(path: str, glob: str) -> bool:
    """`dot_claude/agents` and `dot_claude/agents/**` both mean everything below it."""
    folder = glob.removesuffix("/**").removesuffix("/")
    return path == folder or path.startswith(f"{folder}/") or fnmatch.fnmatchcase(path, glob)


def check_runs(doc: Doc) -> list[CheckRun]:
    """Those of the branch that is checked out."""
    return on_branch(msgspec.convert(doc["results"], list[CheckRun]), current_branch(doc))


def current_branch(doc: Doc) -> str | None:
    git = doc["git"]
    if not git.get("branch"):
        return None
    return "" if git.get("detached") else str(git["branch"])


def unvalidated(doc: Doc) -> list[Mapping[str, Any]]:
    runs = check_runs(doc)
    return [file for file in doc["git"].get("files") or () if not is_validated(doc, file, runs)]


def is_validated(doc: Doc, file: Mapping[str, Any], runs: list[CheckRun]) -> bool:
    """Whether a check that covers this file was begun after its last change, and passed."""
    areas = doc["rules"].get("areas") or {}
    path, changed = str(file.get("path")), int(file.get("changed") or file.get("modified") or 0)
    area = area_of(path, areas)
    if area and areas[area].get("validate"):
        proof = doc["validations"].get(area)
        return bool(proof) and proof["since"] >= changed
    return any(run.began >= changed and validates(run, path) for run in runs)
