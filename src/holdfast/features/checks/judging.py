"""From the result of a shell call to the judgement that is kept with its event."""

import os

import msgspec

from holdfast.core.checks import Check, CommandJudgement, JudgedGitAct, Verdict
from holdfast.core.kinds.agent_events import UNKNOWN_VERB
from holdfast.core.shell.analysis import analyse_command
from holdfast.core.text import CUT_MARK
from holdfast.features.checks.git_acts import git_acts
from holdfast.features.checks.git_watch import Place, find_place
from holdfast.features.checks.judge import Judgement, judge_command
from holdfast.features.checks.reports import add_report
from holdfast.features.checks.repository import RepositoryFiles
from holdfast.features.checks.shell_result import ShellResult

MAX_WRITES = 50
_QUOTES = dict.fromkeys(map(ord, "'\"\\"))
MAX_CHECKS = 20


def judge_result(result: ShellResult, cwd: str, started_ms: int = 0) -> CommandJudgement:
    """`started_ms`: when the call began, where reports may be read; 0 where that is not known."""
    place = find_place(cwd)
    judged = _judge(result, cwd, place)
    elsewhere = _other_place(judged, place)
    if elsewhere is not None:
        place, judged = elsewhere, _judge(result, cwd, elsewhere)
    kept = _kept(judged, place, cwd)
    if result.why_unknown:
        return _unknown(kept, result.why_unknown)
    return add_report(kept, result.command, cwd, started_ms) if started_ms else kept


def git_verbs_of(command: str, cwd: str, root: str) -> list[str]:
    """What the command is about to do in git, as far as its parse tells: each act that may take effect.

    `?` where the command names git and cannot be followed: then nothing is ruled out.
    """
    if "git" not in command.translate(_QUOTES) and "$" not in command:
        return []
    read = RepositoryFiles(root).read if root else None
    analysis = analyse_command(command, cwd=cwd or ".", read_file=read)
    if (analysis.problem or CUT_MARK in command) and "git" in command:
        return [UNKNOWN_VERB]
    acts = git_acts(analysis.commands, "")
    return list(dict.fromkeys(act.verb for act in acts if act.effective is not False))


def _judge(result: ShellResult, cwd: str, place: Place | None) -> Judgement:
    root = place.root if place else ""
    read = RepositoryFiles(root).read if root else None
    return judge_command(
        result.command, cwd, result.exit_code, result.stdout, result.stderr, root=root, read_file=read
    )  # fmt: skip


def _other_place(judged: Judgement, place: Place | None) -> Place | None:
    """Where the command went to another worktree and ran its checks there, and nowhere else."""
    folders = {check.dir for check in judged.checks}
    if not folders or not all(os.path.isabs(folder) for folder in folders):
        return None
    found = [find_place(folder) for folder in sorted(folders)]
    same = {one.root if one else "" for one in found}
    return found[0] if len(same) == 1 and found[0] is not None and (place is None or found[0] != place) else None


def _kept(judged: Judgement, place: Place | None, cwd: str) -> CommandJudgement:
    """What is of interest later: git commands that only look are not, nor where a command was that did nothing."""
    acts = [JudgedGitAct(act.verb, act.effective) for act in judged.git[:MAX_CHECKS] if act.effective is not False]
    if not judged.checks and not acts:
        return CommandJudgement(writes=judged.writes[:MAX_WRITES])
    return CommandJudgement(
        checks=judged.checks[:MAX_CHECKS],
        proves_tests_pass=judged.proves_tests_pass,
        git=acts,
        writes=judged.writes[:MAX_WRITES],
        why=judged.why,
        worktree=place.root if place else "",
        repo=place.shared if place else "",
        branch=place.branch if place else "",
        commit=place.head if place else "",
        cwd=cwd,
    )


def _unknown(judged: CommandJudgement, why: str) -> CommandJudgement:
    checks = [_unknown_check(check, why) for check in judged.checks]
    return msgspec.structs.replace(judged, checks=checks, proves_tests_pass=False, why=why)


def _unknown_check(check: Check, why: str) -> Check:
    counts = {"passed": None, "failed": None, "skipped": None}
    known_not_to_run = check.verdict is Verdict.DID_NOT_RUN
    return check if known_not_to_run else msgspec.structs.replace(check, verdict=Verdict.UNKNOWN, why=why, **counts)
