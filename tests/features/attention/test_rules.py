"""A hundred situations: nothing while the person looks, everything once they are away."""

import itertools

import pytest

from holdfast.core.attention import Attention, Need
from holdfast.features.attention.looking import Presence, Seat
from holdfast.features.attention.rules import due, is_quiet
from holdfast.features.attention.settings import AttentionSettings, Rule
from tests.factories import NOON

AWAY = Seat(focused=False, idle_s=900)
# (what is seen, whether that is looking)
SEATS = {
    "nothing is known": (Seat(), False),
    "tmux: focused": (Seat(focused=True, idle_s=400), True),
    "tmux: another window, typing elsewhere in it": (Seat(focused=False, idle_s=3), False),
    "tmux: detached": (AWAY, False),
    "typed a moment ago": (Seat(idle_s=4), True),
    "typed a quarter of an hour ago": (Seat(idle_s=900), False),
}
PAGES = {"page visible": True, "page hidden": False}
PROMPTED_S = (5, 19, 21, 600, 3600)
KINDS = ("permission", "question")
SITUATIONS = list(itertools.product(SEATS, PAGES, PROMPTED_S, KINDS))


def a_need(kind: str = "permission", **given: object) -> Need:
    fields = {"id": "s#2", "kind": kind, "text": "x", "since": NOON, "seq": 2, "session": "s", "project": "/p/shop"}
    return Need(**{**fields, **given})  # type: ignore[arg-type]


def channels(
    need: Need, presence: Presence, *, rules: tuple[Rule, ...] = (Rule(),), typed_at: int = 0, **when: int
) -> set[str]:
    doc = Attention(session="s", project="/p/shop", needs=[need], typed_at=typed_at)
    at = {"now": NOON + 1000, "minute": 12 * 60, "muted_until": 0, **when}
    return set(due([doc], presence, AttentionSettings(rules=rules), **at))


def test_there_are_a_hundred_situations():
    assert len(SITUATIONS) >= 100


@pytest.mark.parametrize(("seat", "page", "prompted_s", "kind"), SITUATIONS)
def test_a_situation(seat: str, page: str, prompted_s: int, kind: str) -> None:
    seen, looks = SEATS[seat]
    # Where tmux says what is on screen, a prompt of a moment ago adds nothing.
    looks = PAGES[page] or looks or (seen.focused is None and prompted_s <= 20)
    sent = channels(
        a_need(kind), Presence(PAGES[page], {"s": seen}), typed_at=NOON + 1000 - prompted_s * 1000
    )  # fmt: skip
    assert sent == (set() if looks else {"desktop", "terminal"})


def test_who_looked_away_is_told_then():
    need = a_need()
    assert channels(need, Presence(True)) == set()
    assert channels(need, Presence(False), now=NOON + 60_000) == {"desktop", "terminal"}


def test_never_twice_over_one_channel():
    assert channels(a_need(sent=["desktop"]), Presence()) == {"terminal"}
    assert channels(a_need(sent=["desktop", "terminal"]), Presence()) == set()


def test_a_finished_turn_goes_nowhere_unless_it_is_wanted():
    assert channels(a_need("finished"), Presence()) == set()
    assert channels(a_need("finished"), Presence(), rules=(Rule(kinds=("all",), channels=("desktop",)),)) == {"desktop"}


def test_the_first_rule_that_fits_decides():
    rules = (Rule(projects=("/p/private*",), channels=()), Rule(channels=("terminal",)))
    assert channels(a_need(project="/p/private-x"), Presence(), rules=rules) == set()
    assert channels(a_need(), Presence(), rules=rules) == {"terminal"}


def test_a_channel_that_is_not_set_up_is_left_out():
    assert channels(a_need(), Presence(), rules=(Rule(channels=("ntfy", "email", "webhook", "chat")),)) == set()


def test_quiet_hours_wait_and_go_over_midnight():
    assert [is_quiet("22:00-07:00", hour * 60) for hour in (21, 22, 0, 6, 7)] == [False, True, True, True, False]
    rules = (Rule(quiet_hours="22:00-07:00"),)
    assert channels(a_need(), Presence(), rules=rules, minute=23 * 60) == set()
    assert channels(a_need(), Presence(), rules=rules, minute=8 * 60) == {"desktop", "terminal"}


def test_a_mute_ends_and_a_clock_that_jumped_back_does_not_mute_for_ever():
    assert channels(a_need(), Presence(), muted_until=NOON + 2000) == set()
    assert channels(a_need(), Presence(), muted_until=NOON) == {"desktop", "terminal"}
    assert channels(a_need(), Presence(), muted_until=NOON + 400 * 86_400_000) == {"desktop", "terminal"}


def test_a_clock_that_jumped_back_keeps_nothing_back():
    later = NOON + 3_600_000
    assert channels(a_need(since=later), Presence(), typed_at=later) == {"desktop", "terminal"}


def test_a_clock_that_jumped_a_year_ahead_tells_of_nothing_old():
    assert channels(a_need(), Presence(), now=NOON + 365 * 86_400_000) == set()


def test_a_thousand_sessions_are_one_notification_per_channel():
    docs = [Attention(session=f"s{n}", needs=[a_need(id=f"s{n}#1", session=f"s{n}")]) for n in range(1000)]
    chosen = due(docs, Presence(), AttentionSettings(), NOON + 1000, 0, 0)
    assert {channel: len(needs) for channel, needs in chosen.items()} == {"desktop": 1000, "terminal": 1000}
