"""What a person does about needs: answer a question, silence notifications, try a channel."""

import hmac
from typing import Any

from holdfast.core.attention import Need
from holdfast.core.errors import CommandRefused
from holdfast.core.event import own_event
from holdfast.core.feature import Call, CommandResult
from holdfast.core.held_questions import HELD
from holdfast.core.kinds.attention_events import AttentionAnswered, AttentionDue, AttentionMuted
from holdfast.core.times import MINUTE
from holdfast.features.attention.rules import LATEST_MS, is_set_up
from holdfast.features.attention.settings import DEFAULTS
from holdfast.features.attention.views import find_need, need_of_key

LONGEST_REASON, MOST_ANSWERS = 2_000, 20
CHANNELS = ("desktop", "terminal", "page", "webhook", "ntfy", "chat", "email")


def answer(call: Call) -> CommandResult:
    need = find_need(call)
    how = "dashboard" if call.who.why == "in the dashboard" else "command line"
    return _answered(call, need, how)


def answer_link(call: Call) -> CommandResult:
    link = str(call.args.get("link") or "")
    check_code(call, link)
    _verdict(call)
    need = need_of_key(call, HELD.redeem(link, call.now))
    if need is None:
        raise CommandRefused("this link was used already, is too old, or what it was for is settled")
    return _answered(call, need, "link")


def check_code(call: Call, link: str) -> None:
    """The second factor that the person chose."""
    wanted = (call.settings or DEFAULTS).link_code
    if wanted and not hmac.compare_digest(wanted.encode(), str(call.args.get("code") or "").encode("utf-8", "replace")):
        if call.args.get("code"):
            HELD.note_wrong_code(link)
        raise CommandRefused("this needs your code")


def _answered(call: Call, need: Need, how: str) -> CommandResult:
    verdict = _verdict(call)
    if HELD.get(need.key, call.now) is None:
        raise CommandRefused("the agent does not wait for an answer from here", fix="Answer it in its terminal.")
    answers = _answers(call, need) if verdict == "allow" and need.kind == "question" else {}
    event = AttentionAnswered(
        of=need.seq, verdict=verdict, reason=str(call.args.get("reason") or "")[:LONGEST_REASON],
        answers=answers, how=how, who=call.who.why,
    )  # fmt: skip
    # One question has one answer, whoever is first.
    own = own_event(event, call.now, session=need.session, project=need.project, agent=need.agent, once=need.seq)
    return CommandResult((own,), answer={"id": need.id, "verdict": verdict})


def _verdict(call: Call) -> str:
    verdict = str(call.args.get("verdict") or "")
    if verdict not in ("allow", "deny"):
        raise CommandRefused("an answer is allow or deny")
    return verdict


def _answers(call: Call, need: Need) -> dict[str, str]:
    """One for each question; without them Claude Code would go on with none."""
    given = call.args.get("answers")
    named: dict[str, Any] = given if isinstance(given, dict) else {}
    asked = [str(one.get("question")) for one in need.input.get("questions") or () if isinstance(one, dict)]
    answers = {
        question: str(named.get(question) or call.args.get(f"answer-{n}") or "") for n, question in enumerate(asked)
    }
    if not asked or not all(answers.values()):
        raise CommandRefused("every question needs an answer")
    return dict(list(answers.items())[:MOST_ANSWERS])


def mute(call: Call) -> CommandResult:
    minutes = int(call.args.get("minutes") or 0)
    if not 0 <= minutes * MINUTE <= LATEST_MS:
        raise CommandRefused("a mute lasts at most a week")
    until = call.now + minutes * MINUTE if minutes else 0
    return CommandResult((own_event(AttentionMuted(until=until), call.now),), answer={"until": until})


def test(call: Call) -> CommandResult:
    settings = call.settings or DEFAULTS
    wanted = (
        [str(call.args["channel"])]
        if call.args.get("channel")
        else [one for one in CHANNELS if is_set_up(one, settings)]
    )
    if unknown := [one for one in wanted if one not in CHANNELS]:
        raise CommandRefused(f"there is no channel {unknown[0][:40]!r}", fix=f"Channels: {', '.join(CHANNELS)}.")
    if missing := [one for one in wanted if not is_set_up(one, settings)]:
        raise CommandRefused(f"{missing[0]} is not set up", fix="See: holdfast config explain attention")
    events = tuple(own_event(AttentionDue(channel=one, test=True), call.now) for one in wanted)
    return CommandResult(events, answer={"channels": wanted})
