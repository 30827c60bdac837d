"""Turns: opened by a prompt, closed by the agent's stop, the next prompt, or recovery."""

import msgspec

from holdfast.core.event import Event
from holdfast.features.sessions.state.documents import (
    MAX_REMEMBERED_TURNS,
    Session,
    Turn,
    one_line,
)  # fmt: skip

replace = msgspec.structs.replace

CONCLUDED_ENDS = ("recovered", "notified", "lost")
"""Ends that were concluded, not told: activity in a live session proves them wrong."""
USERS_TURN = ("stopped", "failed", "interrupted", "notified", "denied")
"""Ends after which it is the user's turn."""


def open_turn(session: Session, event: Event, *, origin: str, prompt: str = "", turn_id: str = "") -> None:
    close_turn(session, event, "next-prompt")
    last = session.turn
    if last and last.is_unprocessed:
        # Two are kept at hand; of those before them it is only known where they begin: the log has the rest.
        if session.previous and not session.missed:
            session.missed = session.previous.n
        session.previous = last
    n = (last.n if last else 0) + 1
    session.turn = Turn(
        n=n, id=turn_id, origin=origin, prompt=one_line(prompt), at=event.at, first=event.seq, seq=event.seq
    )
    session.recent = [*session.recent, (n, event.at)][-MAX_REMEMBERED_TURNS:]


def close_turn(session: Session, event: Event, how: str, answer: str = "") -> None:
    turn = session.turn
    if turn and turn.is_open:
        session.turn = replace(turn, end=event.at or 1, how=how, answer=one_line(answer) or turn.answer, seq=event.seq)


def reopen_turn(session: Session) -> None:
    if session.turn:
        session.turn = replace(session.turn, end=0, how="")


def count_in_turn(session: Session, event: Event, *, tools: int = 0, failed: int = 0, begins: bool = False) -> None:
    """An activity lands in the latest turn, also when that is closed; where there is none, one is made for it.

    What only begins after the end of a turn (`begins`) shows that the agent works on without a prompt.
    """
    turn = session.turn
    if turn is None:
        open_turn(session, event, origin="recovery")
    elif session.is_active and turn.end and (turn.how in CONCLUDED_ENDS or (begins and event.at > turn.end)):
        reopen_turn(session)
    turn = session.turn
    if turn:
        session.turn = replace(turn, seq=event.seq, tools=turn.tools + tools, failed=turn.failed + failed)


def mark_processed(session: Session, n: int, seq: int) -> None:
    last, previous = session.turn, session.previous
    if previous and previous.n == n and previous.seq <= seq:
        session.previous = None
    if last and last.n == n:
        session.turn = replace(last, processed=max(last.processed, seq))
    if session.missed == n:
        known = session.previous or session.turn
        session.missed = n + 1 if known and n + 1 < known.n else 0
