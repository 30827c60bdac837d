"""Which summary in the output belongs to which command, and whether it can be trusted."""

import re

import msgspec

from holdfast.analysis.shell.analysis import Analysis, Ran, ShellCommand
from holdfast.analysis.shell.flow import UNFINISHED, OutputPiece
from holdfast.analysis.shell.syntax import UNKNOWN
from holdfast.core.checks import CheckKind
from holdfast.features.checks.runners.entries import Entry
from holdfast.features.checks.runners.recognise import Match, all_test_runners
from holdfast.features.checks.runners.spec import Report, Runner, first_reason

# Summaries stand at the end, and names of failures near it; beyond this the middle is dropped.
MAX_CHARACTERS = 400_000
# Colours and cursor moves (CSI), titles and links (OSC), and two-character escapes.
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\^_]")
# What a carriage return overwrote: the terminal shows only what comes after it.
_OVERWRITTEN = re.compile(r"^[^\n]*\r(?=[^\n])", re.MULTILINE)

_TAME = frozenset(
    "ls mkdir rmdir rm cp mv touch chmod chown ln pwd date sleep whoami hostname uname id which type true false test wc stat "
    "basename dirname realpath readlink du df kill pkill tree find pip pip3 uv poetry cargo-add sync clear tput stty "
    "seq nproc git cd sed ps uptime free go coverage".split()
)
"""Programs whose output cannot be taken for the summary of a test runner, apart from the verbs below."""
# They print what others hand to them, and nothing of their own.
_FILTERS = frozenset("cat grep egrep fgrep cut tr sort uniq head tail xargs paste tac rev nl fold".split())
# Verbs of git print the content of files, which may hold a summary; `uv run` starts any program.
_LOUD_VERBS = {
    "git": frozenset("show diff cat-file grep blame archive log".split()),
    **dict.fromkeys(("uv", "poetry"), frozenset(("run",))),
}
# Coverage tools print tables, not summaries; `coverage run` starts the tests.
_QUIET_VERBS = {
    "coverage": frozenset("report html xml json lcov combine erase".split()),
    "go": frozenset("list env version mod vet build fmt".split()),
}


def clean_output(text: str) -> str:
    """Without escape codes and overwritten progress lines. The middle of very long output is dropped."""
    if len(text) > MAX_CHARACTERS:
        half = MAX_CHARACTERS // 2
        text = f"{text[:half]}\n{text[-half:]}"
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "\r" in text:
        text = _OVERWRITTEN.sub("", text.replace("\r\n", "\n"))
    return text


def prints_anything(command: ShellCommand) -> bool:
    """Whether the program could print text that looks like a summary."""
    words = command.words
    name = words[0].rpartition("/")[2]
    # A name that is not known may be any program.
    if UNKNOWN in words[0] or name not in _TAME:
        return True
    if name == "sed":
        return not any(word.startswith(("-i", "--in-place")) for word in words[1:])
    if name == "find":
        return any(word.startswith("-printf") for word in words)
    verb = next((word for word in words[1:] if not word.startswith("-")), "")
    if name in _QUIET_VERBS:
        return verb not in _QUIET_VERBS[name]
    names_only = verb in ("log", "diff", "show") and ("--oneline" in words or "--stat" in words)
    return verb in _LOUD_VERBS.get(name, ()) and not names_only


_UNKNOWN_LINE = re.compile(rf"^{UNKNOWN}", re.MULTILINE)
"""A line that the command prints and that may be anything."""
# From the form that shows most to the one that shows nothing.
_ORDER = ("whole", "tail", "lines", "rewritten", "hidden")


class Output(msgspec.Struct, frozen=True):
    """What the agent reported. With `merged` standard error came on standard output."""

    out: str
    err: str
    reported: bool

    @property
    def merged(self) -> bool:
        return not self.err.strip()


class Candidate(msgspec.Struct, kw_only=True):
    """A command that is, or starts, a check tool, with the summaries that are its own."""

    command: ShellCommand
    match: Match | None = None
    entry: Entry | None = None
    reports: list[Report] = []
    distrust: str = ""
    """Why the summaries are not taken as proof: something else could have printed, filtered or rewritten them."""
    shown: str = "hidden"
    """How its output reached the terminal: `hidden`, `whole`, `tail`, `lines` or `rewritten`."""
    crowded: bool = False
    """Other programs of the command print as well."""
    silent: bool = False
    """The whole command printed nothing."""
    signs: list[Report] = []
    """Failures that show without being trusted as a summary."""
    status_told: bool = True
    """The agent reported the exit status of the command."""

    @property
    def report(self) -> Report | None:
        return self.reports[0] if self.reports else None

    @property
    def trusted(self) -> bool:
        return bool(self.reports) and not self.distrust

    @property
    def kind(self) -> CheckKind | None:
        return self.match.runner.kind if self.match else self.entry.kind if self.entry else None

    @property
    def checks_nothing(self) -> str:
        return self.match.nothing if self.match else self.entry.nothing if self.entry else ""

    @property
    def could_report(self) -> bool:
        return _may_have_run(self.command) and not self.checks_nothing and bool(self.command.visible)

    def reset(self, loud: list[int], output: Output) -> None:
        self.reports, self.signs, self.distrust = [], [], ""
        self.crowded, self.silent = bool(loud), not (output.out.strip() or output.err.strip())
        self.shown = _usual_form(self)


def _may_have_run(command: ShellCommand) -> bool:
    return command.ran is not Ran.NO and not command.invocation.shadowed


def attribute_reports(candidates: list[Candidate], analysis: Analysis, output: Output) -> None:
    """Gives each candidate the summaries that are its own, and the reasons not to trust them."""
    if not output.reported:
        return
    loud = _loud_commands(candidates, analysis)
    # A negative number marks text that the command line itself prints, as `echo` does.
    literal = "".join(piece.text for piece in analysis.terminal if piece.invocation < 0)
    for candidate in candidates:
        candidate.reset(loud, output)  # This is called again after the analysis was narrowed.
    speaking = [c for c in candidates if c.could_report]
    entries = [c for c in speaking if c.entry and c.kind is not CheckKind.BUILD]
    groups: dict[str, list[Candidate]] = {}
    for candidate in speaking:
        # Two calls of one runner share its summaries and must be told apart by order.
        if candidate.match:
            groups.setdefault(candidate.match.runner.name, []).append(candidate)
    for group in groups.values():
        _attribute_runner(group, output, literal, loud, analysis, bool(entries))
    if entries:
        _attribute_entries(entries, output, literal, loud, set(groups))


# ── how output is shown ──────────────────────────────────────────────────────────────────────────────────────────────


def _best_form(pieces: list[OutputPiece]) -> str:
    """The best form in which any of the pieces is shown."""
    forms = {_piece_form(piece) for piece in pieces}
    return next(form for form in _ORDER if form in forms or form == "hidden")


def _piece_form(piece: OutputPiece) -> str:
    if "rewritten" in piece.filters or UNFINISHED in piece.filters:
        return "rewritten"
    if "lines" in piece.filters:
        return "lines"
    return "tail" if piece.filters else "whole"


def _usual_form(candidate: Candidate) -> str:
    pieces = list(candidate.command.visible)
    if candidate.match:
        on_stderr = candidate.match.runner.stream == "stderr"
        return _best_form([piece for piece in pieces if piece.stderr == on_stderr])
    return _best_form(pieces)


def _report_form(candidate: Candidate, report: Report, output: Output) -> str:
    """The form of the stream on which the summary was found."""
    pieces, match = candidate.command.visible, candidate.match
    stdout, stderr = [p for p in pieces if not p.stderr], [p for p in pieces if p.stderr]
    if report.stream == "stderr":
        return _best_form(stderr)
    if not output.merged or (match and match.runner.stream != "stderr"):
        return _best_form(stdout)
    return _best_form((stderr or stdout) if match else (stdout or stderr))


def _shown_forms(candidate: Candidate, output: Output) -> set[str]:
    return {_report_form(candidate, report, output) for report in candidate.reports} or {candidate.shown}


def _loud_commands(candidates: list[Candidate], analysis: Analysis) -> list[int]:
    """Invocations that are no check tools and could print anything, as far as their output is shown."""
    mine = {candidate.command.invocation.index for candidate in candidates}
    # What a filter hands on comes on its output; on standard error it only complains.
    filters = {one.invocation.index for one in analysis.commands if one.words[0].rpartition("/")[2] in _FILTERS}
    shown = {piece.invocation for piece in analysis.terminal if not (piece.stderr and piece.invocation in filters)}
    others = [command for command in analysis.commands if command.invocation.index in shown - mine]
    return [one.invocation.index for one in others if _may_have_run(one) and prints_anything(one)]


def _output_position(analysis: Analysis, index: int, last: bool) -> int:
    positions = [n for n, piece in enumerate(analysis.terminal) if piece.invocation == index]
    return (positions[-1] if last else positions[0]) if positions else -1


# ── runners that are called by name ──────────────────────────────────────────────────────────────────────────────────


def read_reports(runner: Runner, output: Output) -> list[Report]:
    """The summaries of one runner, in order; failures shown next to them count as one more."""
    reports: list[Report] = []
    for stream, text in (("stdout", output.out), ("stderr", output.err)):
        for report in sorted(runner.read(text), key=lambda one: one.position) if text else ():
            report.runner, report.stream = runner.name, stream
            reports.append(report)
    whole = [report for report in reports if not report.partial]
    # A summary with failures says it all; the signs next to it are the same failures.
    if whole and any(report.failed for report in whole):
        return whole
    return reports


def _attribute_runner(
    group: list[Candidate], output: Output, literal: str, loud: list[int], analysis: Analysis, entries: bool
) -> None:
    assert group[0].match is not None
    runner = group[0].match.runner
    reports = read_reports(runner, output)
    whole = [report for report in reports if not report.partial]
    # A summary without failures, and signs of failures next to it.
    contradicted = "failures are shown beside the summary" if whole and len(reports) > len(whole) else ""
    distrust = contradicted or _distrust_reason(runner, literal, loud, entries)
    if runner.sums and whole and len(group) == 1:
        whole = [sum_reports(whole, runner)]
    _hand_out(group, whole)
    for candidate in group:
        candidate.crowded = candidate.crowded or bool(distrust)
        candidate.distrust = distrust or _filter_reason(candidate, runner, output)
        candidate.signs = _failure_signs(candidate, reports, loud, analysis)


def _distrust_reason(runner: Runner, literal: str, loud: list[int], entries: bool) -> str:
    # An unknown text that begins a line may be a summary.
    if literal and (_UNKNOWN_LINE.search(literal) or runner.read(literal)):
        return "the command itself prints a text like the summary"
    if loud:
        return "another program of the command could have printed the summary"
    return "several things in the command print summaries" if entries else ""


_REWRITTEN = "the output was rewritten before it was shown"
_NOT_SHOWN = "its output was not shown, so the summary is not its own"


def _filter_reason(candidate: Candidate, runner: Runner, output: Output) -> str:
    forms = _shown_forms(candidate, output)
    return first_reason(
        ("rewritten" in forms, _REWRITTEN),
        ("hidden" in forms and candidate.reports, _NOT_SHOWN),
        ("lines" in forms and runner.sums, "only some lines of the output are shown"),
        # The last of several summaries may be empty, such as that of doc tests.
        ("tail" in forms and runner.sums and any(r.nothing for r in candidate.reports), "the summary was cut off"),
        (candidate.command.invocation.repeated and forms != {"whole"}, "it may have run several times"),
    )


def _hand_out(group: list[Candidate], reports: list[Report]) -> None:
    """In order, one summary for each run; a single run takes the last of several, which is its own."""
    if len(group) == 1:
        group[0].reports = reports if group[0].command.invocation.repeated else reports[-1:]
        return
    # One summary for each run, or one for each run that is known to have happened.
    takers = group if len(reports) == len(group) else [c for c in group if c.command.ran is Ran.YES]
    if len(takers) != len(reports):
        # The last ones were possibly not reached, as in `a && b`: the first ones take what is there.
        reached = all(c.command.ran is Ran.MAYBE for c in group[len(reports) :])
        takers = group[: len(reports)] if reached and len(reports) < len(group) else []
    for candidate, report in zip(takers, reports, strict=False):
        candidate.reports = [report]


def _failure_signs(candidate: Candidate, reports: list[Report], loud: list[int], analysis: Analysis) -> list[Report]:
    """A failure that is shown before anything else could have printed one is a failure of this run."""
    mine = _output_position(analysis, candidate.command.invocation.index, last=False)
    before = any(_output_position(analysis, one, last=False) < mine for one in loud)
    after = any(_output_position(analysis, one, last=True) > mine for one in loud)
    # Other programs printed on both sides, so it cannot be told whose failure it is.
    if not reports or (before and after):
        return []
    # After others have printed, only the last one is surely its own.
    signs = [report for report in reports if report.partial and not after]
    chosen = reports[-1] if before else (signs or reports)[0]
    return [chosen] if chosen.failed else []


def sum_reports(reports: list[Report], runner: Runner) -> Report:
    passed, failed, skipped = (sum(getattr(r, name) for r in reports) for name in ("passed", "failed", "skipped"))
    nothing = "" if passed or failed else next((r.nothing for r in reports if r.nothing), "no test was run")
    last = reports[-1]
    return Report(
        passed=passed,
        failed=failed,
        skipped=skipped,
        nothing=nothing,
        runner=runner.name,
        position=last.position,
        stream=last.stream,
    )


# ── entry points of the project ──────────────────────────────────────────────────────────────────────────────────────


def _attribute_entries(
    entries: list[Candidate], output: Output, literal: str, loud: list[int], direct: set[str]
) -> None:
    if any(entry.entry and entry.entry.name in _PREFIXING for entry in entries):
        output = _without_prefixes(output, direct)
    faked = bool(literal) and bool(_UNKNOWN_LINE.search(literal) or read_all(Output(literal, "", True), set()))
    takers = [entry for entry in entries if entry.kind in (CheckKind.TEST, None)] or entries
    _hand_out_entries(takers, [] if _is_replayed(output) else read_all(output, direct))
    for candidate in takers:
        candidate.distrust = _entry_distrust(candidate, loud, faked, output)
        candidate.signs = [] if faked else [report for report in candidate.reports if report.failed][:1]


def _hand_out_entries(takers: list[Candidate], reports: list[Report]) -> None:
    if len(takers) == len(reports) > 1:
        for candidate, report in zip(takers, reports, strict=True):
            candidate.reports = [report]
        return
    # Fewer or more summaries than runs, yet all of them passed and so did every command.
    all_passed = all(r.verdict == "passed" for r in reports) and all(c.command.exit_code == 0 for c in takers)
    if len(takers) == 1 or (reports and all_passed):
        takers[0].reports = reports


def _without_prefixes(output: Output, direct: set[str]) -> Output:
    """One package alone is shown without marks, and `Tests: 3 passed` is none."""
    joined = Output(join_prefixed(output.out), join_prefixed(output.err), output.reported)
    return joined if read_all(joined, direct) or _is_replayed(output) else output


_PREFIXING = frozenset(("turbo", "nx", "lerna", "moon"))
# `pkg:test:`, `@scope/pkg |`, `[pkg]:` at the start of each line of a package.
_PREFIXED = re.compile(r"^(\[?@?[\w./-]+(?::[\w.-]+)*\]?(?: \||:))(?: (.*)|)$")


# What build caches print in place of running a task.
_REPLAYED = re.compile(
    r"cache hit, (?:replaying|suppressing)|\[(?:local|remote) cache\]|read the output from the cache|match the cache"
)


def _is_replayed(output: Output) -> bool:
    return bool(_REPLAYED.search(output.out) or _REPLAYED.search(output.err))


def join_prefixed(text: str) -> str:
    """The output of several packages, each line marked with the package's name: one after the other, without marks."""
    if _REPLAYED.search(text):
        return ""  # What is shown is of an earlier run: nothing was run now.
    groups: dict[str, list[str]] = {}
    for line in text.splitlines():
        match = _PREFIXED.match(line)
        groups.setdefault(match[1] if match else "", []).append((match[2] or "") if match else line)
    return "\n".join(line for lines in groups.values() for line in lines)


def _entry_distrust(candidate: Candidate, loud: list[int], faked: bool, output: Output) -> str:
    forms, entry = _shown_forms(candidate, output), candidate.entry
    assert entry is not None
    several = entry.several or candidate.command.invocation.repeated
    return first_reason(
        (entry.kind is None and entry.target, f"nothing says that {entry.name} {entry.target} runs tests"),
        (faked, "the command itself prints a text like a summary"),
        (loud, "another program of the command could have printed the summary"),
        ("rewritten" in forms, _REWRITTEN),
        ("hidden" in forms and candidate.reports, _NOT_SHOWN),
        (forms != {"whole"} and several, "only a part of the output of several runs is shown"),
    )


def read_all(output: Output, leave_out: set[str]) -> list[Report]:
    """The summaries of every known test runner, in order."""
    collected: list[Report] = []
    for runner in all_test_runners():
        if runner.name not in leave_out:
            collected += _further_reports(runner, output, collected)
    whole = [report for report in collected if not report.partial]
    # Lines of TAP look like those of bats; where another runner knows the summary it is not bats.
    if any(report.runner != "bats" for report in whole):
        collected, whole = ([one for one in some if one.runner != "bats"] for some in (collected, whole))
    if not whole:
        return collected[:1]
    chosen = whole if any(report.failed for report in whole) else collected
    return sorted(chosen, key=lambda report: (report.stream, report.position))


def _further_reports(runner: Runner, output: Output, known: list[Report]) -> list[Report]:
    """Some runners end alike: the first that knows a summary is taken for the one that printed it."""
    reports = read_reports(runner, output)
    if runner.sums and reports:
        reports = [sum_reports(reports, runner)]
    positions = {(report.stream, report.position) for report in known if not report.partial}
    return [report for report in reports if (report.stream, report.position) not in positions]
