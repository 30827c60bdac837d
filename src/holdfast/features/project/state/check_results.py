"""The last runs of each suite, which failures are over, and which changed files are validated."""

import fnmatch
import posixpath
from collections.abc import Iterable, Mapping
from itertools import chain

import msgspec
from msgspec.structs import replace

from holdfast.analysis.shell.analysis import Ran, analyse_command
from holdfast.core.checks import (
    CheckKind,
    Selection,
    Verdict,
    all_within,
    chosen_targets,
    encloses_folder,
    is_untested,
    looks_at,
    tool_families,
)
from holdfast.core.event import Event
from holdfast.core.kinds.check_events import CheckFinished
from holdfast.core.kinds.project_events import AreaRules, ChangedFile
from holdfast.features.project.state import CheckRun, Project

# How the checks of a project stand: the runs that still say something, from `check.finished` events. Pure.

MAX_RUNS = 40
MAX_FAILURES = 50


class TestSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The state of all tests together, as the document shows it."""

    status: str = "not_run"
    last_run: int = 0
    total: int = 0
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list[str] = []


def belongs_here(event: Event) -> bool:
    """Whether a check ran in the worktree that the project is, and not in another one or outside of all."""
    check = event.data
    if not isinstance(check, CheckFinished):
        return False
    elsewhere = check.worktree and check.worktree.rstrip("/") != event.project.rstrip("/")
    return not elsewhere and not check.dir.startswith(("/", "~", ".."))


def run_of_event(event: Event) -> CheckRun:
    check: CheckFinished = event.data
    return CheckRun(
        kind=check.kind, runner=check.runner, suite=check.runner, dir=check.dir or ".", branch=check.branch,
        commit=check.commit, content=check.content.get("", ""), selection=check.selection or Selection.ALL.value,
        operands=check.operands, verdict=check.verdict, passed=check.passed, failed=check.failed, skipped=check.skipped,
        # A runner that ended with an exit status alone did not get as far as its tests.
        could_not_start=check.could_not_start or check.why.startswith("exit status"),
        failures=check.failures[:MAX_FAILURES], why=check.why[:300], command=check.command[:300],
        began=event.at - int(check.ms or 0), at=event.at,
    )  # fmt: skip


def _says_nothing(run: CheckRun) -> bool:
    """`pytest --version` was never meant to run tests. A usage error or a missing runner leaves the tests unknown."""
    if run.verdict == Verdict.DID_NOT_RUN:
        return not (run.could_not_start and run.is_test)
    return run.verdict == Verdict.UNKNOWN


# ── how a new run changes what is known ──────────────────────────────────────────────────────────────────────────────


def add_run(runs: list[CheckRun], run: CheckRun) -> list[CheckRun]:
    if _says_nothing(run):
        return runs
    replaced = [old for old in runs if _replaces_run(run, old)]
    remaining = [old for old in runs if old not in replaced]
    wide = [old for old in remaining if _stands_for(old, run)][:1]
    if wide:
        # The wide run is confirmed on the new content, with the counts it had.
        return [replace(old, content=run.content or old.content) if old in wide else old for old in remaining]
    return _bound_runs([*remaining, _named_as_before(run, replaced)])


def _named_as_before(run: CheckRun, replaced: list[CheckRun]) -> CheckRun:
    if run.verdict == Verdict.DID_NOT_RUN:
        return run
    suite = next((old.suite for old in replaced if old.dir == run.dir), run.suite)
    return replace(run, suite=suite, content=_content_of(run, replaced))


def _content_of(run: CheckRun, replaced: list[CheckRun]) -> str:
    """A failure whose content could not be read in time is not known to be of another content than the one before."""
    if run.content or run.verdict != Verdict.FAILED:
        return run.content
    before = (old for old in replaced if old.verdict == Verdict.FAILED and old.commit == run.commit)
    return next((old.content for old in before if old.dir == run.dir), "")


def _stands_for(wide: CheckRun, run: CheckRun) -> bool:
    """A part of what is known to fail failed again: the counts of the whole stay."""
    failing = wide.verdict == run.verdict == Verdict.FAILED
    return failing and not run.is_whole and wide.dir == run.dir and wide.is_whole and covers_run(wide, run)


def _replaces_run(run: CheckRun, old: CheckRun) -> bool:
    if old.verdict == Verdict.DID_NOT_RUN:
        return run.kind == old.kind and _same_suite(run, old)
    if run.kind != old.kind or run.verdict == Verdict.DID_NOT_RUN:
        return False
    # A failure takes the word back that everything around it passes.
    takes_back = run.verdict == Verdict.FAILED and old.verdict == Verdict.PASSED and old.is_whole
    return covers_run(run, old) or (takes_back and covers_run(old, run))


def _same_suite(run: CheckRun, old: CheckRun) -> bool:
    return run.branch == old.branch and run.dir == old.dir and _same_tests(run, old)


def covers_run(run: CheckRun, old: CheckRun) -> bool:
    """Whether `run` includes everything that `old` is about."""
    # The same content proves the same, whatever the branch is called.
    same_content = bool(run.content) and run.content == old.content
    if run.kind != old.kind or not (run.branch == old.branch or same_content) or not _same_tests(run, old):
        return False
    if run.is_whole:
        return encloses_folder(run.dir, old.dir)
    if (run.dir, run.operands, run.command) == (old.dir, old.operands, old.command):
        return True
    chosen = chosen_targets(run.operands) if run.dir == old.dir else []
    return any(all_within(targets, chosen) for targets in (_failed_names(old), chosen_targets(old.operands)))


def _same_tests(run: CheckRun, old: CheckRun) -> bool:
    """The same tool; or an entry point of the same folder, which may run anything that is there."""
    families = tool_families()
    if families.get(run.runner, run.runner) == families.get(old.runner, old.runner):
        return True
    entry_point = run.runner not in families or old.runner not in families
    return run.is_test and run.dir == old.dir and entry_point


def _failed_names(old: CheckRun) -> list[str]:
    """What failed, where all of it is known by name. Some runners name tests without the file they are in."""
    return old.failures if len(old.failures) >= (old.failed or 0) else []


def _bound_runs(runs: list[CheckRun]) -> list[CheckRun]:
    """The oldest that passed go first: a failure is not forgotten for lack of space while a pass is there."""
    excess = len(runs) - MAX_RUNS
    if excess <= 0:
        return runs
    order = sorted(range(len(runs)), key=lambda n: (runs[n].verdict != Verdict.PASSED, runs[n].at))
    dropped = set(order[:excess])
    return [run for n, run in enumerate(runs) if n not in dropped]


def copy_to_branch(runs: list[CheckRun], old: str, new: str, at: int) -> list[CheckRun]:
    """A branch made from another one has the same content, so what is known of that holds for it.

    One that has runs of its own was there before: nothing says that changes came along to it. A command may make the
    branch and run checks on it: those of this moment are newer than what is copied.
    """
    if any(run.branch == new and run.at < at for run in runs):
        return runs
    copied = [run for run in runs if run.branch != new]
    copied += [replace(run, branch=new) for run in runs if run.branch == old]
    for run in runs:
        if run.branch == new:
            copied = add_run(copied, run)
    return _bound_runs(copied)


# ── what it means ────────────────────────────────────────────────────────────────────────────────────────────────────


def on_branch(runs: Iterable[CheckRun], branch: str | None) -> list[CheckRun]:
    """Those of this branch (empty: a detached head). None: it is not known which one is checked out."""
    # A run without branch and commit was outside of git's sight: it counts everywhere.
    return [run for run in runs if branch is None or run.branch == branch or not (run.branch or run.commit)]


def failing_tests(runs: Iterable[CheckRun]) -> list[CheckRun]:
    return [run for run in runs if run.is_test and run.verdict == Verdict.FAILED]


def failing_suites(runs: Iterable[CheckRun]) -> dict[tuple[str, str, str], list[CheckRun]]:
    """By folder, suite and branch: several parts of one suite that fail are one failure."""
    suites: dict[tuple[str, str, str], list[CheckRun]] = {}
    for run in failing_tests(runs):
        suites.setdefault((run.dir, run.suite, run.branch), []).append(run)
    return suites


def count_failed(runs: Iterable[CheckRun]) -> int:
    """At least one for each run that failed, whether or not its output says how many."""
    return sum(run.failed or max(len(run.failures), 1) for run in runs)


def summarise_tests(runs: Iterable[CheckRun]) -> TestSummary:
    """Failing while any run is. Counts come from the widest run: a later run of one file does not rewrite them."""
    tests = [run for run in runs if run.is_test and run.verdict != Verdict.DID_NOT_RUN]
    if not tests:
        return TestSummary()
    failing = failing_tests(tests)
    shown = max(failing or tests, key=lambda run: (run.is_whole, run.dir == ".", run.at))
    counts = {"passed": shown.passed or 0, "failed": count_failed(failing), "skipped": shown.skipped or 0}
    return TestSummary(
        status="failing" if failing else "passing",
        last_run=max(run.at for run in tests),
        total=sum(counts.values()),
        failures=list(dict.fromkeys(chain.from_iterable(run.failures for run in failing)))[:MAX_FAILURES],
        **counts,
    )


def validates_file(run: CheckRun, path: str) -> bool:
    """Whether a passing run says something of this file: tests of everything in their folder, a linter of its types."""
    if run.verdict != Verdict.PASSED or not encloses_folder(run.dir, path):
        return False
    if run.kind == CheckKind.FORMAT or not looks_at(run.runner, path, tests=run.is_test):
        return False
    if run.is_whole:
        return True
    # `tests/test_a.py::test_b` is about the file before the colons.
    named = [
        posixpath.normpath(posixpath.join(run.dir, word.partition("::")[0])) for word in chosen_targets(run.operands)
    ]
    return any(encloses_folder(name, path) for name in named)


# Which changed files are validated: by checks that cover them, or by the commands that an area's settings name.


def proven_areas(
    command: str, exit_code: int | None, output: str, error: str, patterns: Mapping[str, Iterable[str]]
) -> list[str]:
    """Areas whose own command is part of this call, where it is known that it ran and succeeded."""
    analysis = analyse_command(command, exit_code, output, error)
    texts = [" ".join(one.words) for one in analysis.commands if one.ran is Ran.YES and one.exit_code == 0]
    return [
        name
        for name, globs in patterns.items()
        if any(fnmatch.fnmatchcase(text, glob) for text in texts for glob in globs)
    ]


def area_of(path: str, areas: Mapping[str, AreaRules]) -> str:
    """The first area that names the path; empty when none does."""
    for name, area in areas.items():
        if any(matches_path(path, glob) for glob in area.paths):
            return name
    return ""


def matches_path(path: str, glob: str) -> bool:
    """`dot_claude/agents` and `dot_claude/agents/**` both mean everything below it."""
    folder = glob.removesuffix("/**").removesuffix("/")
    return path == folder or path.startswith(f"{folder}/") or fnmatch.fnmatchcase(path, glob)


def check_runs(doc: Project) -> list[CheckRun]:
    """Those of the branch that is checked out."""
    return on_branch(doc.results, doc.git.current_branch)


def unvalidated_files(doc: Project) -> list[ChangedFile]:
    runs = check_runs(doc)
    return [file for file in doc.git.files if _needs_check(doc, file.path) and not is_validated(doc, file, runs)]


def _needs_check(doc: Project, path: str) -> bool:
    """Documents, pictures and data need one only where the settings name them."""
    return not is_untested(path) or bool(area_of(path, doc.rules.areas))


def is_validated(doc: Project, file: ChangedFile, runs: list[CheckRun]) -> bool:
    """Whether a check that covers this file was begun after its last change, and passed."""
    area = area_of(file.path, doc.rules.areas)
    if area and doc.rules.areas[area].validate:
        proof = doc.area_proofs.get(area)
        return proof is not None and proof.since >= file.last_change
    # Begun after the change: a check that was already running may have read the old text. The same content proves the same.
    current = doc.git.content
    return any(
        (run.began >= file.last_change or (current and run.content == current)) and validates_file(run, file.path)
        for run in runs
    )
