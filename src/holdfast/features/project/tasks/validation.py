"""Which changed files are validated: by checks that cover them, or by the commands that an area's settings name."""

import fnmatch
from collections.abc import Iterable, Mapping

from holdfast.core.kinds.project_events import AreaRules, ChangedFile
from holdfast.core.shell.analysis import Ran, analyse_command
from holdfast.features.project.state import Project
from holdfast.features.project.tasks.check_results import CheckRun, on_branch, validates


def proven_areas(
    command: str, exit_code: int | None, output: str, error: str, patterns: Mapping[str, Iterable[str]]
) -> list[str]:
    """Areas whose own command is part of this call, where it is known that it ran and succeeded."""
    analysis = analyse_command(command, exit_code, output, error, cwd=None)
    texts = [" ".join(one.words) for one in analysis.commands if one.ran is Ran.YES and one.exit_code == 0]
    return [
        name
        for name, globs in patterns.items()
        if any(fnmatch.fnmatchcase(text, glob) for text in texts for glob in globs)
    ]


def area_of(path: str, areas: Mapping[str, AreaRules]) -> str:
    """The first area that names the path; empty when none does."""
    for name, area in areas.items():
        if any(matches(path, glob) for glob in area.paths):
            return name
    return ""


def matches(path: str, glob: str) -> bool:
    """`dot_claude/agents` and `dot_claude/agents/**` both mean everything below it."""
    folder = glob.removesuffix("/**").removesuffix("/")
    return path == folder or path.startswith(f"{folder}/") or fnmatch.fnmatchcase(path, glob)


def check_runs(doc: Project) -> list[CheckRun]:
    """Those of the branch that is checked out."""
    return on_branch(doc.results, doc.git.current_branch)


def unvalidated_files(doc: Project) -> list[ChangedFile]:
    runs = check_runs(doc)
    return [file for file in doc.git.files if not is_validated(doc, file, runs)]


def is_validated(doc: Project, file: ChangedFile, runs: list[CheckRun]) -> bool:
    """Whether a check that covers this file was begun after its last change, and passed."""
    area = area_of(file.path, doc.rules.areas)
    if area and doc.rules.areas[area].validate:
        proof = doc.area_proofs.get(area)
        return proof is not None and proof.since >= file.last_change
    return any(run.began >= file.last_change and validates(run, file.path) for run in runs)
