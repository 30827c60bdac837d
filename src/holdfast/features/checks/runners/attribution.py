"""Which summary in the output belongs to which command, and whether it can be trusted."""

import re
from collections.abc import Callable

import msgspec

from holdfast.analysis.shell.analysis import Analysis, Ran, ShellCommand
from holdfast.analysis.shell.flow import UNFINISHED, OutputPiece
from holdfast.analysis.shell.syntax import UNKNOWN
from holdfast.core.checks import CheckKind, Selection
from holdfast.features.checks.runners.entries import Entry
from holdfast.features.checks.runners.recognise import Match, all_test_runners
from holdfast.features.checks.runners.spec import Report, Runner, first_reason

# Summaries are at the end, and names of failures near it, so the middle of longer text is dropped.
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
_LOUD_FLAGS, _QUIET_FLAGS = {"find": ("-printf",)}, {"sed": ("-i", "--in-place")}


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
    verb = next((word for word in words[1:] if not word.startswith("-")), "")
    if name in _QUIET_VERBS:
        return verb not in _QUIET_VERBS[name]
    if name in _QUIET_FLAGS:
        return not _has_flag(words, _QUIET_FLAGS[name])
    names_only = verb in ("log", "diff", "show") and _has_flag(words, ("--oneline", "--stat"))
    return (verb in _LOUD_VERBS.get(name, ()) and not names_only) or _has_flag(words, _LOUD_FLAGS.get(name, ()))


def _has_flag(words: list[str], beginnings: tuple[str, ...]) -> bool:
    return any(word.startswith(beginnings) for word in words[1:])


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
    package: str = ""
    """The folder of the one package that it was limited to by name or path."""

    @property
    def report(self) -> Report | None:
        return self.reports[0] if self.reports else None

    @property
    def operands(self) -> list[str]:
        return self.match.operands if self.match else self.entry.operands if self.entry else []

    @property
    def selection(self) -> Selection:
        return self.match.selection if self.match else self.entry.selection if self.entry else Selection.ALL

    @property
    def by_name_only(self) -> bool:
        """A script of the project that is called a check, and nothing says what it runs."""
        return self.entry is not None and self.entry.script and not self.entry.runner

    @property
    def shows_all(self) -> bool:
        """All of its output shows, and nothing else."""
        return self.shown == "whole" and not self.crowded

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


class _Scene(msgspec.Struct, frozen=True):
    """What the command line prints apart from its check tools."""

    analysis: Analysis
    output: Output
    loud: list[int]
    """Invocations of other programs that could have printed anything."""
    literal: str
    """Text that the command line itself prints, as `echo` does."""

    def fakes(self, read: Callable[[str], object]) -> bool:
        # An unknown text that begins a line may be a summary.
        return bool(self.literal) and bool(_UNKNOWN_LINE.search(self.literal) or read(self.literal))

    def positions(self, index: int) -> list[int]:
        return [n for n, piece in enumerate(self.analysis.terminal) if piece.invocation == index] or [-1]


def attribute_reports(candidates: list[Candidate], analysis: Analysis, output: Output) -> None:
    """Gives each candidate the summaries that are its own, and the reasons not to trust them."""
    if not output.reported:
        return
    scene = _Scene(analysis, output, _loud_commands(candidates, analysis), literal_text(analysis))
    for candidate in candidates:
        candidate.reset(scene.loud, output)  # This is called again after the analysis was narrowed.
    # Two calls of one runner share its summaries and are distinguished by order.
    groups: dict[str, list[Candidate]] = {}
    entries: list[Candidate] = []
    for candidate in filter(lambda one: one.could_report, candidates):
        if candidate.match:
            groups.setdefault(candidate.match.runner.name, []).append(candidate)
        elif candidate.kind is not CheckKind.BUILD:
            entries.append(candidate)
    for group in groups.values():
        _attribute_runner(group, scene, bool(entries))
    if entries:
        _attribute_entries(entries, scene, set(groups))


def literal_text(analysis: Analysis) -> str:
    # A negative number marks text that the command line itself prints.
    return "".join(piece.text for piece in analysis.terminal if piece.invocation < 0)


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
    match = candidate.match
    streams: dict[bool, list[OutputPiece]] = {False: [], True: []}
    for piece in candidate.command.visible:
        streams[piece.stderr].append(piece)
    if report.stream == "stderr":
        return _best_form(streams[True])
    if not output.merged or (match and match.runner.stream != "stderr"):
        return _best_form(streams[False])
    return _best_form(streams[bool(match)] or streams[not match])


def _shown_forms(candidate: Candidate, output: Output) -> set[str]:
    return {_report_form(candidate, report, output) for report in candidate.reports} or {candidate.shown}


def _loud_commands(candidates: list[Candidate], analysis: Analysis) -> list[int]:
    """Invocations that are no check tools and could print anything, as far as their output is shown."""
    mine = {candidate.command.invocation.index for candidate in candidates}
    others = [one for one in analysis.commands if one.invocation.index not in mine]
    return [one.invocation.index for one in others if _is_shown(one, analysis) and prints_anything(one)]


def _is_shown(command: ShellCommand, analysis: Analysis) -> bool:
    # What a filter hands on comes on its output; on standard error it only complains.
    is_filter = command.words[0].rpartition("/")[2] in _FILTERS
    pieces = [piece for piece in analysis.terminal if piece.invocation == command.invocation.index]
    return _may_have_run(command) and any(not (is_filter and piece.stderr) for piece in pieces)


# ── runners that are called by name ──────────────────────────────────────────────────────────────────────────────────


def read_reports(runner: Runner, output: Output) -> list[Report]:
    """The summaries of one runner, in order; failures shown next to them count as one more."""
    reports: list[Report] = []
    for stream, text in (("stdout", output.out), ("stderr", output.err)):
        for report in sorted(runner.read(text), key=lambda one: one.position) if text else ():
            report.runner, report.stream = runner.name, stream
            reports.append(report)
    return _without_repeated_signs(reports)


def _attribute_runner(group: list[Candidate], scene: _Scene, entries: bool) -> None:
    assert group[0].match is not None
    runner = group[0].match.runner
    reports = read_reports(runner, scene.output)
    whole = [report for report in reports if not report.partial]
    distrust = first_reason(
        (whole and len(reports) > len(whole), "failures are shown next to the summary"),
        (scene.fakes(runner.read), "the command itself prints a text like the summary"),
        (scene.loud, "another program of the command could have printed the summary"),
        (entries, "several things in the command print summaries"),
    )
    _hand_out(group, [sum_reports(whole, runner)] if runner.sums and whole and len(group) == 1 else whole)
    for candidate in group:
        candidate.crowded = candidate.crowded or bool(distrust)
        candidate.distrust = distrust or _filter_reason(candidate, runner, scene.output)
        candidate.signs = _failure_signs(candidate, reports, scene)


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
    for candidate, report in zip(_takers(group, len(reports)), reports, strict=False):
        candidate.reports = [report]


def _takers(group: list[Candidate], count: int) -> list[Candidate]:
    """One for each run, or one for each run that is known to have happened."""
    certain = [candidate for candidate in group if candidate.command.ran is Ran.YES]
    if count in (len(group), len(certain)):
        return group if count == len(group) else certain
    # The last ones were possibly not reached, as in `a && b`: the first ones take what is there.
    open_end = count < len(group) and all(candidate.command.ran is Ran.MAYBE for candidate in group[count:])
    return group[:count] if open_end else []


def _failure_signs(candidate: Candidate, reports: list[Report], scene: _Scene) -> list[Report]:
    """A failure that is shown before anything else could have printed one is a failure of this run."""
    mine = scene.positions(candidate.command.invocation.index)[0]
    loud = [scene.positions(one) for one in scene.loud]
    before, after = any(one[0] < mine for one in loud), any(one[-1] > mine for one in loud)
    # Other programs printed on both sides, so the failure may be theirs.
    if not reports or (before and after):
        return []
    # After others have printed, only the last one is surely its own.
    chosen = reports[-1] if before else _first_sign(reports, among_summaries=after)
    return [chosen] if chosen.failed else []


def _first_sign(reports: list[Report], *, among_summaries: bool) -> Report:
    signs = [] if among_summaries else [report for report in reports if report.partial]
    return (signs or reports)[0]


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


def _attribute_entries(entries: list[Candidate], scene: _Scene, direct: set[str]) -> None:
    output = scene.output
    names = {entry.entry.name for entry in entries if entry.entry}
    if names & _PREFIXING or (names & _MAY_PREFIX and not read_all(output, direct)):
        output = _without_prefixes(output, direct)
    faked = scene.fakes(lambda text: read_all(Output(text, "", True), set()))
    takers = [entry for entry in entries if entry.kind in (CheckKind.TEST, None)] or entries
    _hand_out_entries(takers, [] if _is_replayed(output) else read_all(output, direct))
    for candidate in takers:
        candidate.distrust = _entry_distrust(candidate, scene.loud, faked, output)
        failed = [report for report in candidate.reports if report.failed]
        candidate.signs = [] if faked else failed[:1]


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


_PREFIXING, _MAY_PREFIX = frozenset(("turbo", "nx", "lerna", "moon")), frozenset(("pnpm", "bun", "yarn"))
# `pkg:test:`, `@scope/pkg |`, `[pkg]:`, `apps/pkg test:` at the start of each line of a package.
_PREFIXED = re.compile(r"^(\[?@?[\w./-]+(?: [\w:.-]+|(?::[\w.-]+)*)\]?(?: \||:))(?: (.*)|)$")


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
    # Lines of TAP look like those of bats; where another runner knows the summary it is not bats.
    others = [report for report in collected if report.runner != "bats"]
    if not all(report.partial for report in others):
        collected = others
    if all(report.partial for report in collected):
        return collected[:1]
    return sorted(_without_repeated_signs(collected), key=lambda report: (report.stream, report.position))


def _without_repeated_signs(reports: list[Report]) -> list[Report]:
    """A summary with failures says it all; the signs next to it are the same failures."""
    whole = [report for report in reports if not report.partial]
    return whole if any(report.failed for report in whole) else reports


def _further_reports(runner: Runner, output: Output, known: list[Report]) -> list[Report]:
    """Some runners end alike: the first that knows a summary is taken for the one that printed it."""
    reports = read_reports(runner, output)
    if runner.sums and reports:
        reports = [sum_reports(reports, runner)]
    positions = {(report.stream, report.position) for report in known if not report.partial}
    return [report for report in reports if (report.stream, report.position) not in positions]
