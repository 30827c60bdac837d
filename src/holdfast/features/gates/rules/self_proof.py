"""Commands that bring their own proof: `pytest && git commit`."""

from collections.abc import Iterable

from holdfast.analysis.shell.analysis import Analysis, Ran, ShellCommand, analyse_command
from holdfast.analysis.shell.flow import TERMINAL, Path
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
    acts = {command.invocation.index for command in analysis.commands if rule.is_about(reading_of(command))}
    proofs = [command for command in analysis.commands if _is_proof(command, one)]
    if not acts:
        # Without the act in the line, every way on which it may succeed must have passed the proof.
        return _all_pass(proofs, filter(_may_succeed, analysis.paths))
    reached = [path for path in analysis.paths if path.ran.keys() & acts]
    # Nothing may be written on a path that reaches the act: it would not be what was proven.
    sinks = set().union(*(path.outputs for path in reached))
    return sinks <= {TERMINAL} and _all_pass(
        [proof for proof in proofs if _ran_where_it_counts(proof, one, project)], reached
    )


def _all_pass(proofs: list[ShellCommand], paths: Iterable[Path]) -> bool:
    """Whether on each of these ways one of the proofs ran and passed."""
    indexes = [proof.invocation.index for proof in proofs]
    return bool(proofs) and all(any(i in path.ran and path.assumed.get(i) == 0 for i in indexes) for path in paths)


def _is_proof(command: ShellCommand, one: "Evidence") -> bool:
    invocation = command.invocation
    unsure = invocation.tampered or invocation.shadowed or invocation.background or command.ran is Ran.NO
    return not unsure and is_real_run(command.words) and command_matches(reading_of(command), one.command)


def _ran_where_it_counts(command: ShellCommand, one: "Evidence", project: str) -> bool:
    """`cd docs && pytest && git commit` proves nothing of `src/**`."""
    folder = command.invocation.cwd
    return UNKNOWN in folder or touches_globs(reach_in(project, "", [tested_folder(folder)]), one.after_edit)


def _may_succeed(path: Path) -> bool:
    status = path.status
    if status.kind == "of":
        # Unless something else is assumed, the last program is taken to succeed.
        path.assumed.setdefault(status.invocation, 0)
        return path.assumed[status.invocation] == 0
    return not (status.kind == "code" and status.code != 0)


def is_named_by(rule: Rule, command: str) -> bool:
    """Whether a program of the command is what the rule takes for proof, be it a check tool or any script."""
    globs = tuple(glob for one in evidence_of(rule.spec) for glob in one.command)
    commands = analyse_command(command).commands if globs else ()
    return any(command_matches(reading_of(one), globs) for one in commands if is_real_run(one.words))
