"""Commands that bring their own proof: `pytest && git commit`."""

from typing import Any

from holdfast.analysis.shell.analysis import Analysis, Ran, ShellCommand, analyse_command
from holdfast.analysis.shell.flow import TERMINAL
from holdfast.analysis.shell.syntax import UNKNOWN
from holdfast.core.checks import tested_folder, touches_globs
from holdfast.core.event import Event
from holdfast.core.kinds import ToolPayload
from holdfast.features.gates.evidence import command_matches, reach_in
from holdfast.features.gates.kinds.evidence import Evidence, evidence_of
from holdfast.features.gates.looking import is_real_run, reading_of
from holdfast.features.gates.rules.triggers import Rule


def proves_itself(rule: Rule, event: Event, data: ToolPayload) -> bool:
    """`pytest && git commit`: what it asks for is reached only where the proof passed in the same line, and nothing it
    covers is written there. A line that is the proof itself is never refused for want of it."""
    analysis = analyse_command(data.command, cwd=data.cwd or event.project)
    if analysis.problem:
        return False
    return all(one.command and _is_guarded(rule, one, analysis, event.project) for one in evidence_of(rule.spec))


def _is_guarded(rule: Rule, one: "Evidence", analysis: Analysis, project: str) -> bool:
    acts = [c.invocation.index for c in analysis.commands if rule.is_about(reading_of(c))]
    proofs = [c for c in analysis.commands if _is_proof(c, one)]
    if acts:
        proofs = [c for c in proofs if _ran_where_it_counts(c, one, project)]
        paths = [path for path in analysis.paths if not path.ran.keys().isdisjoint(acts)]
    else:
        # Without the act in the line, every way on which it may succeed must have passed the proof.
        paths = [path for path in analysis.paths if _may_succeed(path)]
    indexes = [proof.invocation.index for proof in proofs]
    # Nothing may be written on a way that reaches the act: it would not be what was proven.
    writes = bool(acts) and any(path.outputs.keys() - {TERMINAL} for path in paths)
    return bool(proofs) and not writes and all(_proof_passed(path.ran, path.assumed, indexes) for path in paths)


def _is_proof(command: ShellCommand, one: "Evidence") -> bool:
    invocation = command.invocation
    unsure = invocation.tampered or invocation.shadowed or invocation.background or command.ran is Ran.NO
    return not unsure and is_real_run(command.words) and command_matches(reading_of(command), one.command)


def _ran_where_it_counts(command: ShellCommand, one: "Evidence", project: str) -> bool:
    """`cd docs && pytest && git commit` proves nothing of `src/**`."""
    folder = command.invocation.cwd
    return UNKNOWN in folder or touches_globs(reach_in(project, "", [tested_folder(folder)]), one.after_edit)


def _proof_passed(ran: dict[int, bool], assumed: dict[int, int], proofs: list[int]) -> bool:
    return any(index in ran and assumed.get(index) == 0 for index in proofs)


def _may_succeed(path: Any) -> bool:
    status = path.status
    if status.kind == "of":
        # Unless something else is assumed, the last program is taken to succeed.
        path.assumed.setdefault(status.invocation, 0)
        return bool(path.assumed[status.invocation] == 0)
    return not (status.kind == "code" and status.code != 0)


def is_named_by(rule: Rule, command: str) -> bool:
    """Whether a program of the command is what the rule takes for proof, be it a check tool or any script."""
    globs = tuple(glob for one in evidence_of(rule.spec) for glob in one.command)
    commands = analyse_command(command).commands if globs else ()
    return any(command_matches(reading_of(one), globs) for one in commands if is_real_run(one.words))
