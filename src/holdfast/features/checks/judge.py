"""From a finished shell command to its checks, their verdicts, and whether it proves that tests pass."""

import os
import posixpath
import re
from itertools import pairwise

import msgspec

from holdfast.analysis.shell.analysis import Analysis, Ran, ShellCommand, analyse_command, remember_by_text
from holdfast.analysis.shell.execute import ReadFile
from holdfast.analysis.shell.git_acts import GitAct, git_acts
from holdfast.analysis.shell.git_words import reading_verbs
from holdfast.analysis.shell.syntax import ROOT_FOLDER, UNKNOWN
from holdfast.analysis.shell.written_files import written_files
from holdfast.core.checks import (
    UNKNOWN_FOLDER,
    WHOLE,
    Check,
    CheckKind,
    CommandJudgement,
    JudgedGitAct,
    Selection,
    Verdict,
)
from holdfast.core.kinds.agent_events import UNKNOWN_VERB
from holdfast.core.text import CUT_MARK
from holdfast.features.checks.bending import variables_set
from holdfast.features.checks.git_watch import Worktree, find_place
from holdfast.features.checks.observe import ShellResult
from holdfast.features.checks.runners.attribution import (
    Candidate,
    Output,
    attribute_reports,
    clean_output,
    literal_text,
    read_all,
)
from holdfast.features.checks.runners.entries import (
    Entry,
    EntryText,
    RepositoryFiles,
    read_entry_text,
    recognise_entry,
    runs_tests_by_hook,
)
from holdfast.features.checks.runners.reach import find_foreign_code, find_reach, packages_of, place_package
from holdfast.features.checks.runners.recognise import Match, recognise_runner, selects_tests
from holdfast.features.checks.runners.reports import add_report
from holdfast.features.checks.runners.spec import Runner
from holdfast.features.checks.runners.verdicts import judge_entry, judge_runner

# Attribution compares candidates with each other; a generated line with hundreds would hold the hook up.
MAX_CANDIDATES = 60
NO_TEST_RUN = "no test run in this command"


class Judgement(msgspec.Struct, kw_only=True):
    """What can be said of one finished shell command."""

    checks: list[Check] = []
    proves_tests_pass: bool = False
    git: list[GitAct] = []
    writes: list[str] = []
    why: str = ""


def judge_command(
    command: str,
    cwd: str,
    exit_code: int | None,
    stdout: str | None,
    stderr: str | None,
    *,
    root: str = "",
    read_file: ReadFile | None = None,
) -> Judgement:
    """`stdout` and `stderr` are None where the agent does not report them. `root`: the repository, if `cwd` is absolute."""
    # An agent that reports nothing is not one whose command printed nothing.
    reported = stdout is not None or stderr is not None
    output = Output(clean_output(stdout or ""), clean_output(stderr or ""), reported)
    streams = (output.out, output.err) if reported else (None, None)
    analysis = analyse_command(command, exit_code, *streams, cwd=cwd or ".", read_file=read_file)
    if analysis.problem:
        return Judgement(why=analysis.problem)
    candidates = find_candidates(analysis)
    if len(candidates) > MAX_CANDIDATES:
        return Judgement(why="the command starts too many checks to be followed")
    writes = [_relative_folder(path, root) for path in written_files(analysis, command)]
    _distrust_written(candidates, writes)
    _attribute(candidates, analysis, output, status_told=exit_code is not None)
    if read_file is not None:
        for candidate in candidates:
            place_package(candidate, root)
        _distrust_modules(candidates, root, read_file)
        _read_entries(candidates, read_file)
        for candidate in candidates:
            _narrow_to_packages(candidate, root)
    checks = [check for candidate in candidates for check in _judge_candidate(candidate, root, read_file)]
    proves, why = _conclude_tests(checks)
    git = git_acts(analysis.commands, f"{output.out}\n{output.err}")
    return Judgement(checks=checks, proves_tests_pass=proves, git=git, writes=writes, why=why)


def _attribute(candidates: list[Candidate], analysis: Analysis, output: Output, *, status_told: bool) -> None:
    for candidate in candidates:
        candidate.status_told = status_told
    attribute_reports(candidates, analysis, output)
    # A run that passed shows which others were reached, so the summaries are handed out again.
    if _narrow_analysis(candidates, analysis):
        attribute_reports(candidates, analysis, output)


def _narrow_analysis(candidates: list[Candidate], analysis: Analysis) -> bool:
    """A trusted summary of one run says more about the others: `lint && test` ran the tests, so lint passed."""
    passed_by_index = {
        c.command.invocation.index: c.reports[0].verdict is Verdict.PASSED
        for c in candidates
        if c.trusted and c.match and len(c.reports) == 1 and c.reports[0].verdict in (Verdict.PASSED, Verdict.FAILED)
    }
    ran = {c.command.invocation.index for c in candidates if c.trusted}
    return bool(ran) and analysis.narrow(ran, passed_by_index)


# Files that change what a runner collects or which status it ends with.
_CONFIGURATION = re.compile(
    r"(?:^|/)(?:conftest\.py|pytest\.ini|tox\.ini|setup\.cfg|pyproject\.toml|sitecustomize\.py|usercustomize\.py|\.mocharc\.\w+|jest\.config\.\w+|vitest\.config\.\w+|package\.json)$"
)


_PACKAGE_FILE = re.compile(r"/__(?:init|main)__\.py$")


# Logs and reports are often named after the tool that wrote them.
_REPORTS = (".log", ".txt", ".xml", ".json", ".ini", ".toml", ".out")


def _distrust_written(candidates: list[Candidate], writes: list[str]) -> None:
    """A command that writes a program or the settings of a runner may have changed what the runner's status means."""
    configured = any(_CONFIGURATION.search(path) for path in writes)
    # `pytest.py` in the folder would be run in place of the tool, and so would `pytest/__main__.py`.
    written = {name for path in writes if not path.endswith(_REPORTS) for name in _module_names(path)}
    for match in filter(None, (candidate.match for candidate in candidates)):
        names = {program.split()[0] for program in match.runner.programs}.union(match.runner.modules)
        if names & written:
            match.foreign = f"the command itself writes a file named {sorted(names)[0]}"
        if configured:
            match.lenient = match.lenient or "settings written by the command"


def _module_names(path: str) -> tuple[str, str]:
    return path.rpartition("/")[2].partition(".")[0], _PACKAGE_FILE.sub("", path).rpartition("/")[2]


def _distrust_modules(candidates: list[Candidate], root: str, read_file: ReadFile) -> None:
    for candidate in candidates:
        if candidate.match is not None:
            candidate.match.foreign = candidate.match.foreign or find_foreign_code(candidate, root, read_file)


def _read_entries(candidates: list[Candidate], read_file: ReadFile) -> None:
    """What the project's own files say of an entry point: a name for it, and whether it prints summaries itself."""
    for candidate in candidates:
        entry = candidate.entry
        if entry is None or candidate.command.ran is Ran.NO:
            continue
        text = read_entry_text(entry, _candidate_folder(candidate), read_file)
        if text.written:
            _read_recipe(candidate, entry, text)


def _narrow_to_packages(candidate: Candidate, root: str) -> None:
    """By the call, or by the recipe that it runs: `"test:web": "nx test web"`."""
    entry = candidate.entry
    if entry is not None and not candidate.package and not place_package(candidate, root):
        entry.selection, entry.operands, entry.packages = Selection.PART, [f"--filter {packages_of(candidate)[0]}"], []


def _read_recipe(candidate: Candidate, entry: Entry, text: EntryText) -> None:
    recipe = analyse_command(text.written)
    literal = literal_text(recipe)
    if literal and read_all(Output(literal, "", True), set()):
        candidate.distrust = candidate.distrust or f"{entry.target} itself prints a text like a summary"
    started = find_candidates(recipe)
    tests = [one for one in started if one.kind is CheckKind.TEST]
    if tests and not entry.packages and all(one.entry and one.entry.packages for one in tests):
        entry.packages = [name for one in tests if one.entry for name in one.entry.packages]
    entry.several = entry.several or len(tests) > 1 or any(one.entry and one.entry.several for one in tests)
    matches = [one.match for one in started if one.match]
    if matches:
        _read_selection(entry, matches, _matches_in(analyse_command(text.called)))
    _name_runner(candidate, entry, [match.runner for match in matches])


def _matches_in(recipe: Analysis) -> list[Match]:
    return [candidate.match for candidate in find_candidates(recipe) if candidate.match]


def _read_selection(entry: Entry, written: list[Match], called: list[Match]) -> None:
    """What the project's files select is the whole; a call that adds to it selects a part."""
    known = [match.operands for match in written]
    parts = [match for match in called if match.selection is Selection.PART and match.operands not in known]
    entry.selection = Selection.PART if parts else Selection.ALL
    shown = parts[:1] or called
    entry.operands = shown[0].operands if len(shown) == 1 else []


def _name_runner(candidate: Candidate, entry: Entry, runners: list[Runner]) -> None:
    test = next((runner for runner in runners if runner.kind is CheckKind.TEST), None)
    if test is not None:
        # The recipe names a test runner, so the doubt about the entry point is gone.
        if entry.kind is None and candidate.distrust.startswith("nothing says"):
            candidate.distrust = ""
        entry.kind, entry.runner = CheckKind.TEST, test.name
    elif runners and entry.kind in (None, *(runner.kind for runner in runners)):
        entry.kind, entry.runner = runners[0].kind, runners[0].name


def find_candidates(analysis: Analysis) -> list[Candidate]:
    """The commands that are check tools, or entry points that start some."""
    return [candidate for command in analysis.commands if (candidate := _find_candidate(command))]


def _find_candidate(command: ShellCommand) -> Candidate | None:
    words = command.words
    # The program's name comes from a variable or a substitution.
    if UNKNOWN in words[0]:
        return None
    match = recognise_runner(words, command.invocation.environment)
    if match is not None and not runs_tests_by_hook(match):
        return Candidate(command=command, match=match)
    entry = recognise_entry(command)
    if entry is None:
        return None
    # Until the project's files say what it runs: a word that is no flag names tests.
    if named := [word for word in entry.handed_on if not word.startswith("-") or selects_tests(word)]:
        entry.selection, entry.operands = Selection.PART, named
    return Candidate(command=command, entry=entry)


def _judge_candidate(candidate: Candidate, root: str, read_file: ReadFile | None) -> list[Check]:
    checks = judge_runner(candidate) if candidate.match else judge_entry(candidate)
    folder = _relative_folder(_candidate_folder(candidate), root)
    reach = [_relative_folder(one, root) for one in find_reach(candidate, folder, read_file)]
    given = {"dir": folder, "reach": reach, "bent": _bends_in(candidate), "ran_with": _program_words(candidate)}
    return [msgspec.structs.replace(check, **given) for check in checks]


def _bends_in(candidate: Candidate) -> list[str]:
    """What the command itself sets that can change which tests run, or how they end."""
    words = candidate.match.arguments if candidate.match else []
    bends = candidate.match.runner.bends if candidate.match else frozenset[str]()
    found = [pair for pair in pairwise([*words, ""]) if pair[0].partition("=")[0] in bends]
    # `-p no:NAME` takes a plugin away.
    flags = [" ".join(pair).strip() for pair in found if not pair[1].startswith("no:")]
    return [*variables_set(candidate.command.invocation.environment), *(f"the command has {flag}" for flag in flags)]


_LAUNCHERS = frozenset(("uv", "poetry", "pipenv", "pdm", "hatch", "rye"))


def _program_words(candidate: Candidate) -> dict[str, str]:
    """What `add_bends` needs to find the program."""
    invocation = candidate.command.invocation
    if candidate.match is None or UNKNOWN in invocation.words[0]:
        return {}
    words = {"program": invocation.words[0], "cwd": invocation.cwd, "path": invocation.environment.get("PATH", "")}
    return words | {"launcher": next((one for one in invocation.wrappers if one.split()[0] in _LAUNCHERS), "")}


def _candidate_folder(candidate: Candidate) -> str:
    if candidate.package:
        return candidate.package
    cwd = candidate.command.invocation.cwd
    inner = candidate.entry.directory if candidate.entry else ""
    if cwd == ROOT_FOLDER and UNKNOWN not in inner:
        return posixpath.normpath(inner) if inner else WHOLE
    if UNKNOWN in cwd or UNKNOWN in inner:
        return UNKNOWN_FOLDER
    return posixpath.normpath(posixpath.join(cwd, inner)) if inner else cwd


def _relative_folder(folder: str, root: str) -> str:
    """The folder relative to the repository that contains it."""
    root = root.rstrip("/")
    if root and folder.rstrip("/") == root:
        return "."
    return folder.removeprefix(f"{root}/") if root else folder


def _conclude_tests(checks: list[Check]) -> tuple[bool, str]:
    """Tests are proved to pass when some ran and passed, and none failed or is unknown."""
    tests = [check for check in checks if check.kind is CheckKind.TEST]
    if not tests:
        return False, NO_TEST_RUN
    # A failure says more than an unknown verdict, so it is named first.
    named = [_first_with(tests, verdict) for verdict in (Verdict.FAILED, Verdict.UNKNOWN, Verdict.PASSED)]
    decisive = next(filter(None, named), tests[0])
    return decisive is named[2], f"{decisive.runner}: {decisive.why}"


def _first_with(tests: list[Check], verdict: Verdict) -> Check | None:
    proven = verdict is Verdict.PASSED  # Without a test that passed, passing proves nothing.
    return next((check for check in tests if check.verdict is verdict and not (proven and check.passed == 0)), None)


# From the result of a shell call to the judgement that is kept with its event.

MAX_WRITES = 50
# `g"i"t` and `g\it` run git as well.
_QUOTES = dict.fromkeys(map(ord, "'\"\\"))
MAX_CHECKS = 20


def judge_result(result: ShellResult, cwd: str, started_ms: int = 0) -> CommandJudgement:
    """`started_ms`: when the call began, where reports may be read; 0 where that is not known."""
    if is_uneventful(result.command):
        return CommandJudgement()
    worktree = find_place(cwd)
    judged = _judge_in(result, cwd, worktree)
    # Read again with the files of that worktree: its recipes and settings count, not those of the first.
    elsewhere = _other_place(judged, worktree)
    if elsewhere is not None:
        worktree, judged = elsewhere, _judge_in(result, cwd, elsewhere)
    judgement = _kept_judgement(judged, worktree, cwd)
    if result.why_unknown:
        return _unknown_judgement(judgement, result.why_unknown)
    return add_report(judgement, result.command, cwd, started_ms) if started_ms else judgement


def judge_recorded(result: ShellResult, cwd: str, root: str) -> CommandJudgement:
    """Without files: those of that time are gone."""
    if is_uneventful(result.command):
        return CommandJudgement()
    judged = judge_command(result.command, cwd, result.exit_code, result.stdout, result.stderr, root=root)
    judgement = _kept_judgement(judged, None, cwd)
    return _unknown_judgement(judgement, result.why_unknown) if result.why_unknown else judgement


@remember_by_text
def is_uneventful(command: str) -> bool:
    """Nothing in it could be a check, write a file or change git, wherever it ran and however it ended."""
    analysis = analyse_command(command)
    if analysis.problem or analysis.reads_files or find_candidates(analysis) or written_files(analysis, command):
        return False
    return all(act.verb in reading_verbs() for act in git_acts(analysis.commands, ""))


def git_verbs_of(command: str, cwd: str, root: str) -> list[str]:
    """What the command is about to do in git, according to its parse: each act that may take effect.

    `?` where the command names git and cannot be followed: then nothing is ruled out.
    """
    # A variable may hold the word `git`; without one the text is searched before it is parsed.
    if "git" not in command.translate(_QUOTES) and "$" not in command:
        return []
    read = RepositoryFiles(root).read if root else None
    analysis = analyse_command(command, cwd=cwd or ".", read_file=read)
    # A cut command may hide what comes after the cut.
    if (analysis.problem or CUT_MARK in command) and "git" in command:
        return [UNKNOWN_VERB]
    acts = git_acts(analysis.commands, "")
    return list(dict.fromkeys(act.verb for act in acts if act.effective is not False))


def _judge_in(result: ShellResult, cwd: str, worktree: Worktree | None) -> Judgement:
    root = worktree.root if worktree else ""
    read = RepositoryFiles(root).read if root else None
    return judge_command(
        result.command, cwd, result.exit_code, result.stdout, result.stderr, root=root, read_file=read
    )  # fmt: skip


def _other_place(judged: Judgement, worktree: Worktree | None) -> Worktree | None:
    """Where the command went to another worktree and ran its checks there, and nowhere else."""
    folders = {check.dir for check in judged.checks}
    if not all(map(os.path.isabs, folders)):
        return None
    places = [find_place(folder) for folder in sorted(folders)]
    together = len({place.root if place else "" for place in places}) == 1
    return places[0] if together and places[0] != worktree else None


def _kept_judgement(judged: Judgement, worktree: Worktree | None, cwd: str) -> CommandJudgement:
    """Leaves out git commands that only read, and the place of a command that did nothing."""
    acts = [JudgedGitAct(act.verb, act.effective) for act in judged.git[:MAX_CHECKS] if act.effective is not False]
    if not judged.checks and not acts:
        return CommandJudgement(writes=judged.writes[:MAX_WRITES])
    return CommandJudgement(
        checks=judged.checks[:MAX_CHECKS],
        proves_tests_pass=judged.proves_tests_pass,
        git=acts,
        writes=judged.writes[:MAX_WRITES],
        why=judged.why,
        worktree=worktree.root if worktree else "",
        repo=worktree.shared if worktree else "",
        branch=worktree.branch if worktree else "",
        commit=worktree.head if worktree else "",
        cwd=cwd,
    )


def _unknown_judgement(judged: CommandJudgement, why: str) -> CommandJudgement:
    checks = [_unknown_check(check, why) for check in judged.checks]
    return msgspec.structs.replace(judged, checks=checks, proves_tests_pass=False, why=why)


def _unknown_check(check: Check, why: str) -> Check:
    counts = {"passed": None, "failed": None, "skipped": None}
    # That a check did not run is known from the command; how the command ended does not change it.
    known_not_to_run = check.verdict is Verdict.DID_NOT_RUN
    return check if known_not_to_run else msgspec.structs.replace(check, verdict=Verdict.UNKNOWN, why=why, **counts)
