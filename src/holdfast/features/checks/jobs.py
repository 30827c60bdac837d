"""Checks of commands whose exit status was told after the call had ended (Codex writes it into its transcript)."""

import msgspec

from holdfast.core.checks import Check
from holdfast.core.event import Event, derived_event
from holdfast.core.feature import JobCall
from holdfast.core.kinds import ToolEndPayload
from holdfast.features.checks.policy import check_finished
from holdfast.features.checks.shell_result import read_shell_result


def judge_late(call: JobCall) -> list[Event]:
    """A check whose verdict is another one now is told again, with the content as it was when the call ended."""
    from holdfast.features.checks.judging import judge_result

    payload = call.job.payload
    ended = call.reader.event(int(payload["of"]))
    code = payload.get("exit_code")
    if ended is None or not isinstance(ended.data, ToolEndPayload) or not isinstance(code, int):
        return []
    before = ended.data.judgement
    if before is None or not before.checks:
        return []
    result = msgspec.structs.replace(read_shell_result(ended), exit_code=code)
    judged = judge_result(result, before.cwd or ended.data.cwd)
    where = {"worktree": before.worktree, "repo": before.repo, "branch": before.branch, "commit": before.commit}
    judged = msgspec.structs.replace(judged, **where)
    changed = [check for check in judged.checks if not _is_known(check, before.checks)]
    return [
        _told_late(derived_event(ended, check_finished(ended, ended.data, judged, check)), number)
        for number, check in enumerate(changed)
    ]


def _is_known(check: Check, told: list[Check]) -> bool:
    return any(msgspec.structs.replace(one, why=check.why) == check for one in told)


def _told_late(event: Event, number: int) -> Event:
    return msgspec.structs.replace(event, key=f"{event.key}.late.{number}")
