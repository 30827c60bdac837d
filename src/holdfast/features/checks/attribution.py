"""Which summary in the output belongs to which command, and whether it can be trusted."""

import msgspec

from holdfast.core.checks import CheckKind
from holdfast.core.shell.analysis import Analysis, Ran, ShellCommand
from holdfast.core.shell.flow import Piece
from holdfast.features.checks.entries import Entry
from holdfast.features.checks.output import prints_anything
from holdfast.features.checks.recognise import TEST_RUNNERS, Match
from holdfast.features.checks.runners.spec import Report, Runner


class Candidate(msgspec.Struct, kw_only=True):
    """A command that is, or starts, a check tool, with the summaries that are its own."""

    command: ShellCommand
    match: Match | None = None
    entry: Entry | None = None
    reports: list[Report] = []
    trusted: bool = False
    """Nothing else in the command could have printed, filtered or rewritten these summaries."""
    shown: str = "hidden"
    """How its output reached the terminal: `hidden`, `whole`, `tail`, `lines` or `rewritten`."""
    distrust: str = ""
    signs: list[Report] = []
    """Failures that show without being trusted as a summary."""

    @property
    def kind(self) -> CheckKind | None:
        return self.match.runner.kind if self.match else self.entry.kind if self.entry else None

    @property
    def checks_nothing(self) -> str:
        return (self.match.nothing if self.match else self.entry.nothing if self.entry else "") or ""


_ORDER = ("whole", "tail", "lines", "rewritten", "hidden")


def how_shown(pieces: tuple[Piece, ...]) -> str:
    """The best form in which the output of a command is shown."""
    forms = {_form(piece) for piece in pieces}
    return next(form for form in _ORDER if form in forms or form == "hidden")


def _form(piece: Piece) -> str:
    if "rewritten" in piece.filters:
        return "rewritten"
    if "lines" in piece.filters:
        return "lines"
    return "tail" if piece.filters else "whole"


def attribute_reports(candidates: list[Candidate], analysis: Analysis, text: str, reported: bool) -> None:
    if not reported:
        return
    for candidate in candidates:
        candidate.shown = how_shown(candidate.command.visible)
    if not text.strip():
        return
    loud = _loud_commands(candidates, analysis)
    by_runner: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        if candidate.match and _could_report(candidate):
            by_runner.setdefault(candidate.match.runner.name, []).append(candidate)
    entries = [c for c in candidates if c.entry and c.kind is not CheckKind.BUILD and _could_report(c)]
    literal = "".join(piece.text for piece in analysis.terminal if piece.invocation < 0)
    for group in by_runner.values():
        _attribute_runner(group, text, literal, loud, analysis, bool(entries))
    if entries:
        _attribute_entries(entries, text, literal, loud, analysis, set(by_runner))


def _could_report(candidate: Candidate) -> bool:
    command = candidate.command
    return command.ran is not Ran.NO and not candidate.checks_nothing and not command.invocation.shadowed and candidate.shown not in ("hidden",)


def _loud_commands(candidates: list[Candidate], analysis: Analysis) -> list[int]:
    """Invocations that are no check tools and could print anything, as far as their output is shown."""
    mine = {candidate.command.invocation.index for candidate in candidates}
    shown = {piece.invocation for piece in analysis.terminal}
    return [
        command.invocation.index
        for command in analysis.commands
        if command.invocation.index in shown - mine
        and not command.invocation.shadowed
        and command.ran is not Ran.NO
        and prints_anything(command)
    ]


def _position(analysis: Analysis, index: int, last: bool) -> int:
    places = [n for n, piece in enumerate(analysis.terminal) if piece.invocation == index]
    return (places[-1] if last else places[0]) if places else -1


def _attribute_runner(group: list[Candidate], text: str, literal: str, loud: list[int], analysis: Analysis, entries: bool) -> None:
    runner = group[0].match.runner if group[0].match else TEST_RUNNERS[0]
    reports = sorted(runner.read(text), key=lambda report: report.position)
    for report in reports:
        report.runner = runner.name
    whole = [report for report in reports if not report.partial]
    distrust = _distrust(runner, literal, loud, entries)
    if runner.sums and whole and len(group) == 1:
        whole = [_summed(whole, runner)]
    _hand_out(group, whole)
    for candidate in group:
        candidate.distrust = distrust or _filtered(candidate, runner)
        candidate.trusted = not candidate.distrust and bool(candidate.reports)
        candidate.signs = _signs(candidate, reports, loud, analysis)


def _distrust(runner: Runner, literal: str, loud: list[int], entries: bool) -> str:
    if literal and runner.read(literal):
        return "the command itself prints a text like the summary"
    if loud:
        return "another program of the command could have printed the summary"
    return "several things in the command print summaries" if entries else ""


def _filtered(candidate: Candidate, runner: Runner) -> str:
    if candidate.shown == "rewritten":
        return "the output was rewritten before it was shown"
    if candidate.shown == "lines" and runner.sums:
        return "only some lines of the output are shown"
    if candidate.command.invocation.repeated:
        return "it may have run several times"
    return ""


def _hand_out(group: list[Candidate], reports: list[Report]) -> None:
    """In order, one summary for each run; a single run takes the last of several, which is its own."""
    if len(group) == 1:
        group[0].reports = reports[-1:]
        return
    takers = group if len(reports) == len(group) else [c for c in group if c.command.ran is Ran.YES]
    if len(takers) == len(reports):
        for candidate, report in zip(takers, reports, strict=True):
            candidate.reports = [report]
    elif reports and len(reports) < len(group) and all(c.command.ran is Ran.MAYBE for c in group[len(reports) :]):
        for candidate, report in zip(group, reports, strict=False):
            candidate.reports = [report]


def _signs(candidate: Candidate, reports: list[Report], loud: list[int], analysis: Analysis) -> list[Report]:
    """A failure that is shown first, before anything else could have printed one, is a failure of this run."""
    if not reports or candidate.shown == "rewritten":
        return []
    index = candidate.command.invocation.index
    mine = _position(analysis, index, last=False)
    before = [one for one in loud if _position(analysis, one, last=False) < mine]
    after = [one for one in loud if _position(analysis, one, last=True) > mine]
    if before and after:
        return []
    chosen = reports[-1] if before else reports[0]
    return [chosen] if chosen.failed else []


def _summed(reports: list[Report], runner: Runner) -> Report:
    passed, failed, skipped = (sum(getattr(r, name) for r in reports) for name in ("passed", "failed", "skipped"))
    nothing = "" if passed or failed else next((r.nothing for r in reports if r.nothing), "no test was run")
    return Report(passed=passed, failed=failed, skipped=skipped, nothing=nothing, runner=runner.name, position=reports[-1].position)


def _attribute_entries(
    entries: list[Candidate], text: str, literal: str, loud: list[int], analysis: Analysis, direct: set[str]
) -> None:
    reports = read_all(text, direct)
    faked = bool(literal) and bool(read_all(literal, set()))
    takers = [entry for entry in entries if entry.kind in (CheckKind.TEST, None)] or entries
    if len(takers) == 1:
        takers[0].reports = reports
    elif len(takers) == len(reports):
        for candidate, report in zip(takers, reports, strict=True):
            candidate.reports = [report]
    elif reports and all(report.failed == 0 for report in reports):
        sure = [c for c in takers if c.command.exit_code == 0]
        for candidate in sure if len(sure) == len(takers) else []:
            candidate.reports = reports[:1]
    for candidate in takers:
        candidate.distrust = _entry_distrust(candidate, loud, faked)
        candidate.trusted = not candidate.distrust and bool(candidate.reports)
        candidate.signs = [r for r in candidate.reports if r.failed][:1] if not faked and candidate.shown != "rewritten" else []


def _entry_distrust(candidate: Candidate, loud: list[int], faked: bool) -> str:
    if faked:
        return "the command itself prints a text like a summary"
    if loud:
        return "another program of the command could have printed the summary"
    if candidate.shown == "rewritten":
        return "the output was rewritten before it was shown"
    if candidate.shown in ("tail", "lines") and candidate.entry and candidate.entry.several:
        return "only a part of the output of several packages is shown"
    return "it may have run several times" if candidate.command.invocation.repeated else ""


def read_all(text: str, leave_out: set[str]) -> list[Report]:
    """The summaries of every known test runner, in order."""
    found: list[Report] = []
    for runner in TEST_RUNNERS:
        if runner.name in leave_out:
            continue
        reports = runner.read(text)
        for report in reports:
            report.runner = runner.name
        if runner.sums and [r for r in reports if not r.partial]:
            reports = [_summed([r for r in reports if not r.partial], runner)]
        found += reports
    whole = [report for report in found if not report.partial]
    return sorted(whole or found[:1], key=lambda report: report.position)
