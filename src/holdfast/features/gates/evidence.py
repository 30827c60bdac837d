"""Facts on record: runs, edits, skills, commits, scenarios."""

import fnmatch
import posixpath
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import msgspec

from holdfast.analysis.shell.analysis import Analysis, Ran, ShellCommand, analyse_command
from holdfast.analysis.shell.command_effects import BLANK
from holdfast.analysis.shell.written_files import put_back_after, written_after
from holdfast.core.checks import WHOLE, Selection
from holdfast.core.document import with_newest, without_keys
from holdfast.core.event import Event
from holdfast.core.kinds import ToolEndPayload, ToolPayload
from holdfast.core.kinds.check_events import CheckFinished
from holdfast.core.kinds.gates_events import GatesLooked, GatesMeasured
from holdfast.core.kinds.session_events import ToolExitRead
from holdfast.features.gates.events import UAT
from holdfast.features.gates.looking import is_real_run, one_word, only_looks, reading_of, reading_words

replace = msgspec.structs.replace
MOST_EDITS, MOST_COMMANDS, MOST_SKILLS, MOST_COMMITS, MOST_RUNS, MOST_SIZES = 60, 40, 30, 20, 30, 20
LONGEST_COMMAND = 400
SOMEWHERE = "*"
"""An edit of unknown files."""
MOST_SUITES, STILL_WHOLE = 40, 0.8
MOST_PROGRAMS, MOST_READINGS, MOST_CHANGED, MOST_FOLDERS, MOST_NAMES = 12, 3, 20, 20, 20
_COPIES = re.compile(r"^(?:cp|rsync|mktemp|tar|git clone|git worktree|git archive)(?: |$)")


class RunFact(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A command, a commit, a skill or a scenario that ran."""

    seq: int
    at: int
    outcome: int = 1
    """1: it passed · 0: it failed · -1: it proves nothing, `why` says why."""
    session: str = ""
    branch: str = ""
    content: dict[str, str] = {}
    """Fingerprints of what it ran on, by what they cover."""
    why: str = ""
    changed_after: list[str] = []
    """Files that the same command wrote after the run."""
    put_back: list[str] = []
    """Those that it also wrote before the run, so the run saw other content."""
    check: str = ""
    """What kind of check it was; empty for other commands."""
    runner: str = ""
    dir: str = ""
    reach: list[str] = []
    """Folders it covers, relative to the project; empty means unknown and counts for all."""
    operands: list[str] = []
    """The selected tests; empty means all."""
    partial: bool = False
    """The command selected tests. What the recipe of `npm test` selects is the whole suite."""
    failures: list[str] = []
    """Names of what failed, where all of them are known."""
    bent: list[str] = []
    """What may have made it pass besides the code."""
    tests: int = 0
    """How many ran."""
    tests_before: int = 0
    """How many ran when the suite was last green, where that is more than a fifth more."""

    @property
    def passed(self) -> bool:
        return self.outcome > 0


class BranchLines(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    lines: int = 0
    base: str = ""
    at: int = 0


class CoveredFiles(msgspec.Struct, frozen=True, kw_only=True):
    """What the files that a requirement covers looked like, and up to which event that was."""

    digest: str
    as_of: int


class Facts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What is on record of one project."""

    project: str = ""
    at: int = 0
    suites: dict[str, int] = {}
    """How many tests of a suite ran when it was last green, by runner, place and branch."""
    edits: dict[str, int] = {}
    floor: int = 0
    """Edits up to this event were too many to remember."""
    ran: dict[str, RunFact] = {}
    skills: dict[str, RunFact] = {}
    commits: dict[str, RunFact] = {}
    """By session."""
    uat: dict[str, RunFact] = {}
    sizes: dict[str, BranchLines] = {}
    """By branch."""
    seen: dict[str, CoveredFiles] = {}
    touched: dict[str, int] = {}
    """Requirement → the event up to which its facts are older than a change seen on disk."""
    missing: list[str] = []
    """Skills that requirements name but that are not installed."""


NO_FACTS = Facts()


def reduce_facts(doc: Facts | None, event: Event) -> Facts | None:
    data, doc = event.data, doc or Facts(project=event.project)
    if isinstance(data, ToolPayload):
        return None if data.claimed or data.action not in _TOOL_FACTS else _TOOL_FACTS[data.action](doc, event, data)
    if event.kind in UAT:
        return with_uat(doc, event)
    return _OTHER_FACTS[type(data)](doc, event, data) if type(data) in _OTHER_FACTS else None


def _after_exit(doc: Facts, event: Event, data: ToolExitRead) -> Facts | None:
    # A check of that call outweighs its exit code; if the code decides it, it is judged again.
    if any(run.seq == data.of for run in doc.ran.values()):
        return None
    return with_run(doc, event, data) if data.action == "shell" and data.command else None


def _after_look(doc: Facts, event: Event, data: GatesLooked) -> Facts:
    return replace(doc, missing=data.missing[:50], at=event.at)


def _after_edit(doc: Facts, event: Event, data: ToolPayload) -> Facts | None:
    return _add_edits(doc, event, data) if event.kind == "tool.finished" else None


def _after_command(doc: Facts, event: Event, data: ToolPayload) -> Facts | None:
    ended = data if isinstance(data, ToolEndPayload) else ToolEndPayload()
    updated = with_run(doc, event, ended) if data.command else None
    return _after_other(updated or doc, event, data) or updated


def _after_other(doc: Facts, event: Event, data: ToolPayload) -> Facts | None:
    return _add_edits(doc, event, data) if data.written else None


def _after_skill(doc: Facts, event: Event, data: ToolPayload) -> Facts | None:
    if not data.skill or (isinstance(data, ToolEndPayload) and data.ok is False):
        return None
    ran = RunFact(seq=event.seq, at=event.at, session=event.session, branch=data.branch)
    return replace(doc, skills=with_newest(doc.skills, data.skill, ran, MOST_SKILLS), at=event.at)


# What a tool does → the facts that it leaves.
_TOOL_FACTS = {
    "edit": _after_edit, "shell": _after_command, "mcp": _after_other, "other": _after_other, "skill": _after_skill,
}  # fmt: skip


def _add_edits(doc: Facts, event: Event, data: ToolPayload) -> Facts:
    edits, floor = doc.edits, doc.floor
    for path in data.written or data.paths or (SOMEWHERE,):
        edits = with_newest(edits, path, event.seq, MOST_EDITS + 1)
        if len(edits) > MOST_EDITS:
            oldest = next(iter(edits))
            floor = edits[oldest]
            edits = without_keys(edits, [oldest])
    return replace(doc, edits=edits, floor=floor, at=event.at)


def with_run(doc: Facts, event: Event, data: ToolEndPayload | ToolExitRead) -> Facts | None:
    """A command without an exit code (still running, interrupted) is no fact at all.

    One whose exit code was found out later is a fact of the moment when it ended: what was edited since makes it stale.
    """
    code, ended = data.exit_code, data if isinstance(data, ToolEndPayload) else ToolEndPayload()
    if code is None or ended.detached or ended.interrupted or only_looks(data.command):
        return None
    fact = _run_fact(event, data, ended)
    analysis = analyse_command(data.command, code, ended.output, cwd=ended.cwd or event.project)
    ran, made = doc.ran, doc.commits
    for command, outcome in _real_runs(analysis, ended, code):
        changed, back = _changed_after(analysis, command)
        reading, fact = reading_of(command), replace(fact, outcome=outcome, changed_after=changed, put_back=back)
        ran = _with_latest(ran, _fact_name(reading, fact.reach), fact, MOST_COMMANDS)
        if outcome == 1 and reading.startswith("git commit"):
            made = _with_latest(made, event.session, replace(fact, content={}), MOST_COMMITS)
    return None if ran is doc.ran else replace(doc, ran=ran, commits=made, at=event.at)


def _run_fact(event: Event, data: ToolEndPayload | ToolExitRead, ended: ToolEndPayload) -> RunFact:
    return RunFact(
        seq=data.of if isinstance(data, ToolExitRead) else event.seq, at=event.at, session=event.session, branch=data.branch,
        content=dict(ended.content), reach=_where_it_ran(ended, event.project),
    )  # fmt: skip


def _real_runs(analysis: Analysis, ended: ToolEndPayload, code: int) -> Iterator[tuple[ShellCommand, int]]:
    """Each program whose end is known, and whether it passed."""
    for command in analysis.commands[:MOST_PROGRAMS]:
        outcome = _run_outcome(command, code, len(analysis.commands) == 1)
        if outcome or (outcome == 0 and not _is_left_open(command, ended)):
            yield command, outcome


def _is_left_open(command: ShellCommand, ended: ToolEndPayload) -> bool:
    """It ended with an error and no test failed (timeout, usage error); its check event follows."""
    names = {word.rpartition("/")[2] for word in command.words}
    checks = ended.judgement.checks if ended.judgement else []
    return any(one.runner in names and one.verdict in ("unknown", "did_not_run") for one in checks)


def _where_it_ran(ended: ToolEndPayload, project: str) -> list[str]:
    """Known if all checks of the call agree; their events follow."""
    checks = ended.judgement.checks if ended.judgement else []
    same = all(check.reach == checks[0].reach for check in checks)
    worktree = ended.judgement.worktree if ended.judgement else ""
    return reach_in(project, worktree, checks[0].reach) if checks and same else []


def reach_in(project: str, worktree: str, reach: list[str]) -> list[str]:
    """Relative to the project, including repositories inside it; absolute without a project."""
    if not project:
        return reach
    base = worktree if worktree.startswith(f"{project}/") else project
    full = (posixpath.normpath(posixpath.join(base, folder)) for folder in reach)
    inside = (WHOLE if one == project else one.removeprefix(f"{project}/") for one in full)
    return list(inside)[:MOST_FOLDERS]


def _fact_name(reading: str, reach: list[str]) -> str:
    """`pytest -q` in one folder says nothing of `pytest -q` in another."""
    return "\n".join([reading[:LONGEST_COMMAND], *(reach if WHOLE not in reach else ())])


def _changed_after(analysis: Analysis, command: ShellCommand) -> tuple[list[str], list[str]]:
    """Files that it wrote after that program, and those of them that it wrote before too."""
    index = command.invocation.index
    return written_after(analysis, index)[:MOST_CHANGED], put_back_after(analysis, index)[:MOST_CHANGED]


def _run_outcome(command: ShellCommand, code: int, alone: bool) -> int | None:
    """1: it ran and exited 0 · 0: it failed · None: not a run, or how it ended does not show."""
    invocation = command.invocation
    if command.ran is Ran.NO or invocation.shadowed or not is_real_run(command.words):
        return None
    if command.exit_code or (code != 0 and alone):
        return 0
    unsure = any((command.pending, invocation.tampered, invocation.background))
    return 1 if (command.ran, command.exit_code, unsure) == (Ran.YES, 0, False) else None


def with_check(doc: Facts, event: Event, check: CheckFinished) -> Facts:
    """A check's verdict overrides the exit code."""
    analysis = analyse_command(check.command)
    if _is_plain_entry(check, analysis):
        return _name_check(doc, check)
    readings = _readings_of(check, analysis)
    fact = _check_fact(event, check, analysis)
    fact, suites = _compare_suite(doc, check, _with_tests_of_call(doc, fact))
    by_status = [name for name, run in doc.ran.items() if run.seq == check.of and not run.check]
    replaced = [name for name in by_status if name.partition("\n")[0] in readings]
    ran = without_keys(doc.ran, replaced)
    for name in (_fact_name(reading, fact.reach) for reading in readings):
        if name not in ran or not _outweighs(ran[name], fact):
            ran = with_newest(ran, name, fact, MOST_COMMANDS)
    return replace(doc, ran=ran, suites=suites, at=event.at)


def _name_check(doc: Facts, check: CheckFinished) -> Facts:
    """Its exit status is the verdict."""
    named = {"check": check.kind, "runner": check.runner}
    ran = {name: replace(run, **named) if run.seq == check.of else run for name, run in doc.ran.items()}
    return replace(doc, ran=ran)


def _outweighs(before: RunFact, fact: RunFact) -> bool:
    """A pass on the same content outweighs a later unknown result, and a failure the passes of the same call."""
    if before.seq == fact.seq and before.check and before.outcome == 0:
        return True
    return fact.outcome < 0 and before.passed and bool(before.content) and before.content == fact.content


def _check_fact(event: Event, check: CheckFinished, analysis: Analysis) -> RunFact:
    copied = check.dir == "?" and any(_COPIES.match(reading_of(one)) for one in analysis.commands)
    changed, back = _changed_after_check(analysis, check)
    all_named = (check.failed or 1) <= len(check.failures) <= MOST_NAMES
    return RunFact(
        seq=check.of, at=event.at, check=check.kind, runner=check.runner,
        outcome=-1 if copied else {"passed": 1, "failed": 0}.get(check.verdict, -1), session=event.session,
        branch=check.branch, content=dict(check.content), why=COPIED if copied else check.why, changed_after=changed, put_back=back,
        dir=check.dir, reach=reach_in(event.project, check.worktree, check.reach), operands=check.operands[:MOST_NAMES],
        partial=check.selection == Selection.PART, failures=check.failures if all_named else [],
        bent=check.bent, tests=(check.passed or 0) + (check.failed or 0),
    )  # fmt: skip


def _with_tests_of_call(doc: Facts, fact: RunFact) -> RunFact:
    """A call that goes over several packages shows a summary of each; together they are the suite."""
    call = (fact.seq, fact.runner, fact.reach)
    # An unknown result is not another package: the same run was judged again.
    judged = (run for run in doc.ran.values() if run.outcome >= 0)
    before = [run.tests for run in judged if (run.seq, run.runner, run.reach) == call]
    return replace(fact, tests=fact.tests + max(before, default=0))


_LISTING = frozenset(("-v", "-json"))


def _compare_suite(doc: Facts, check: CheckFinished, fact: RunFact) -> tuple[RunFact, dict[str, int]]:
    """A green run of fewer tests than before is no new measure: run once more, it is still too small."""
    if not fact.passed or fact.partial or not fact.tests:
        return fact, doc.suites
    # `go test` counts packages, and only with these flags tests.
    listed = _LISTING.intersection(check.command.split()) if check.runner == "go test" else ()
    suite = "\n".join((check.runner, check.branch, *fact.reach, *(("tests",) if listed else ())))
    before = doc.suites.get(suite, 0)
    if fact.tests < before * STILL_WHOLE:
        return replace(fact, tests_before=before), doc.suites
    return fact, with_newest(doc.suites, suite, fact.tests, MOST_SUITES)


_PLAIN_MAKE = re.compile(
    r"make(?: -s| -j ?\d*| --silent| --no-print-directory)*(?: [\w./][\w./-]*)+(?: -s| -j ?\d*| --silent| --no-print-directory)*$"
)


def _is_plain_entry(check: CheckFinished, analysis: Analysis) -> bool:
    """A script that nobody knows more of, so that how it ended is what the rule asked for: `make test` of a project whose
    tests print no summary, without options that change what its status means."""
    if check.verdict != "unknown" or check.presumed:
        return check.verdict == "unknown"
    named = [one for one in analysis.commands if reading_words(one.words)[0] == "make"]
    plain = all(
        _PLAIN_MAKE.match(" ".join(one.words)) and "MAKEFLAGS" not in one.invocation.environment for one in named
    )
    return check.why.endswith(NO_SUMMARY) and bool(named) and plain


NO_SUMMARY = "shows no summary of a test run"
COPIED = "it ran in a copy of the project"


def _changed_after_check(analysis: Analysis, check: CheckFinished) -> tuple[list[str], list[str]]:
    if check.verdict != "passed" or not analysis.commands:
        return [], []
    named = [one for one in analysis.commands if _names_runner(one.words, check)]
    runs = named or [one for one in analysis.commands if is_real_run(one.words)] or analysis.commands
    return _changed_after(analysis, runs[-1])


def _names_runner(words: list[str], check: CheckFinished) -> bool:
    return any(word.rpartition("/")[2] == check.runner for word in words)


def _readings_of(check: CheckFinished, analysis: Analysis) -> list[str]:
    """How rules may name it: the program that was typed, and the tool that it came down to (`python -m pytest`)."""
    commands = [reading_words(one.words) for one in analysis.commands if is_real_run(one.words)]
    named = [words for words in commands if _names_runner(words, check)]
    shown = [" ".join(words) for words in named or commands]
    return list(dict.fromkeys([*shown[:MOST_READINGS], " ".join([check.runner, *map(one_word, check.operands)])]))


def _with_latest(runs: dict[str, RunFact], name: str, fact: RunFact, most: int) -> dict[str, RunFact]:
    """Exit codes that are read late may arrive out of order."""
    return runs if name in runs and runs[name].seq > fact.seq else with_newest(runs, name, fact, most)


def with_uat(doc: Facts, event: Event) -> Facts | None:
    """Tools name scenarios and outcomes differently."""
    scenario = event.get("scenario") or event.get("name")
    if not isinstance(scenario, str):
        return None
    outcome = event.get("outcome") or event.get("status") or event.get("verdict")
    passed = outcome in ("passed", "pass", "success")
    fact = RunFact(seq=event.seq, at=event.at, outcome=int(passed), session=event.session)
    return replace(doc, uat=with_newest(doc.uat, scenario[:200], fact, MOST_RUNS), at=event.at)


def with_measure(doc: Facts, event: Event, data: GatesMeasured) -> Facts:
    seen, touched = {}, dict(doc.touched)
    for name, digest in data.covers.items():
        seen[name] = CoveredFiles(digest=digest, as_of=data.as_of)
        if name in doc.seen and doc.seen[name].digest != digest:
            touched[name] = doc.seen[name].as_of
    size = BranchLines(lines=data.lines, base=data.base, at=event.at)
    touched = {name: seq for name, seq in touched.items() if name in seen}
    sizes = with_newest(doc.sizes, data.branch, size, MOST_SIZES)
    return replace(doc, sizes=sizes, seen=seen, touched=touched, at=event.at)


@lru_cache(8_000)
def command_matches(command: str, globs: tuple[str, ...]) -> bool:
    """A command as it was typed, and by its program's bare name."""
    name, _, rest = command.partition(" ")
    bare = f"{name.rpartition('/')[2]} {rest}".strip()
    texts = {command.replace(BLANK, " "), bare.replace(BLANK, " ")}
    return any(fnmatch.fnmatchcase(text, " ".join(glob.split())) for glob in globs for text in texts)


_OTHER_FACTS: dict[type, Callable[[Facts, Event, Any], Facts | None]] = {
    ToolExitRead: _after_exit,
    CheckFinished: with_check,
    GatesMeasured: with_measure,
    GatesLooked: _after_look,
}
