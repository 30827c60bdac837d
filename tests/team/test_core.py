"""The rules that server, forwarder and simulation share; and that the simulation finds a broken one."""

import itertools
from pathlib import Path

import msgspec
import pytest

from holdfast_team import core
from holdfast_team.protocol import MOST_EVENTS, Batch, FeedItem, LeaseRequest, SharedEvent
from tests.campaign import team

replace, grant = msgspec.structs.replace, core.change_lease


def an_event(seq: int, **more) -> SharedEvent:
    return SharedEvent(seq=seq, key=f"k{seq}", at=seq, kind=more.pop("kind", "tool.finished"), **more)


def a_batch(after: int, upto: int, *seqs: int, stream: int = 1, **more) -> Batch:
    return Batch(stream=stream, after=after, upto=upto, events=tuple(map(an_event, seqs)), **more)


def taken(accepted: core.Accepted) -> list[int]:
    return [event.seq for event in accepted.fresh]


def place(accepted: core.Accepted) -> tuple[int, int]:
    return accepted.cursor.stream, accepted.cursor.cursor


def test_a_repeated_or_overlapping_batch_adds_only_what_is_new() -> None:
    first = core.accept_batch(core.MachineCursor(), a_batch(0, 10, 2, 9))
    assert (taken(first), place(first)) == ([2, 9], (1, 10))
    again = core.accept_batch(first.cursor, a_batch(0, 10, 2, 9))
    assert (taken(again), again.known, again.cursor) == ([], 2, first.cursor)
    more = core.accept_batch(first.cursor, a_batch(5, 20, 9, 12))
    assert (taken(more), more.cursor.cursor) == ([12], 20)


def test_a_batch_above_the_cursor_is_a_gap_and_takes_nothing() -> None:
    found = core.accept_batch(core.MachineCursor(1, 10), a_batch(11, 20, 12))
    assert (found.gap, found.fresh, found.cursor.cursor) == (True, (), 10)


@pytest.mark.parametrize(
    "lie",
    [
        a_batch(0, 5, 3, 2),
        a_batch(0, 5, 3, 3),
        a_batch(0, 5, 6),
        a_batch(5, 9, 5),
        a_batch(-1, 5, 1),
        a_batch(9, 5),
        a_batch(0, 1 << 63, 1),
        a_batch(0, 5, 1, stream=0),
        a_batch(0, 10_000, *range(1, MOST_EVENTS + 2)),
    ],
)
def test_a_machine_that_lies_about_its_numbers_is_refused(lie: Batch) -> None:
    with pytest.raises(core.BatchRefused):
        core.accept_batch(core.MachineCursor(1, 0), lie)


def test_a_stream_that_is_over_is_refused_and_a_new_one_begins_at_the_common_part() -> None:
    have = core.MachineCursor(1, 100)
    found = core.accept_batch(have, a_batch(50, 90, 60, 85, stream=2, restores=((2, 80),)))
    assert (taken(found), place(found)) == ([85], (2, 90))
    with pytest.raises(core.BatchRefused, match="stream 1 is over"):
        core.accept_batch(found.cursor, a_batch(90, 100, 95))


def test_numbers_that_are_used_again_are_not_taken_for_repeated_ones() -> None:
    """A state folder that came back as a whole: the machine remembers nothing of what it sent since."""
    have = core.accept_batch(core.MachineCursor(), a_batch(0, 100, 60, run="r1", upto_event="k100")).cursor
    for later in (
        a_batch(50, 70, 60, run="r2", after_event="k50", upto_event="other"),
        a_batch(100, 101, 101, run="r2"),
    ):
        found = core.accept_batch(have, later)
        assert (found.gap, taken(found), found.cursor.key) == (True, [], "k100")
    again = core.accept_batch(have, a_batch(50, 100, 60, run="r1", upto_event="k100"))
    assert not again.gap and again.known == 1
    state = core.Upstream(cursor=50)
    assert core.is_other_log(state, 1, 100, "k100", 70, "") and core.is_other_log(state, 1, 60, "k60", 70, "other")
    assert core.is_other_log(state, 2, 10, "", 70, "") and not core.is_other_log(state, 1, 60, "k60", 70, "k60")


def test_what_another_stream_brought_already_is_not_stored_again() -> None:
    have = core.accept_batch(core.MachineCursor(), a_batch(0, 100, 52, 60, run="r1", upto_event="k100")).cursor
    begun = core.after_restore(core.Upstream(cursor=50), 49, "k49", have.stream)
    assert (begun.stream, begun.cursor, begun.restores) == (2, 49, ((2, 49),))
    batch = a_batch(49, 70, 52, 66, stream=2, restores=begun.restores, common_event="k49", run="r2", upto_event="n70")
    assert core.keys_needed(have, batch) == (49, 70)
    found = core.accept_batch(have, batch, {"k49", "k52", "k60"})
    assert (taken(found), place(found), found.cursor.top) == ([66], (2, 70), 100)
    lost = core.accept_batch(have, batch, {"k60"})
    assert (lost.gap, place(lost)) == (True, (2, 0)), "the server came back from a backup: from the beginning again"
    assert core.keys_needed(found.cursor, a_batch(70, 80, 71, stream=2)) == (71, 80)


def test_a_stream_that_the_machine_does_not_remember_shares_only_what_each_one_since_did() -> None:
    assert core.restore_bound(core.Upstream(cursor=50), 3, ((2, 30), (3, 60))) == 30
    assert core.restore_bound(core.Upstream(cursor=50), 3, ((3, 60),)) == 0
    assert core.after_restore(core.Upstream(cursor=50), 30, "k", 3).restores == ((4, 30),)


def test_two_processes_that_take_turns_are_a_copied_folder() -> None:
    have = core.MachineCursor()
    for run, upto in (("a", 1), ("a", 2), ("b", 3), ("b", 4)):
        found = core.accept_batch(
            have, a_batch(upto - 1, upto, upto, run=run, after_event=have.key, upto_event=f"k{upto}")
        )
        assert not found.copied
        have = found.cursor
    back = core.accept_batch(have, a_batch(4, 5, 5, run="a", after_event="k4"))
    assert (back.copied, taken(back)) == (True, [])


def test_what_is_too_much_for_one_batch_is_cut_at_an_event() -> None:
    batch = core.build_batch(core.Upstream(), 9_999, [an_event(n * 2) for n in range(1, 900)], (), "facts", 0)
    assert (len(batch.events), batch.upto) == (MOST_EVENTS, MOST_EVENTS * 2)


def test_failures_wait_longer_and_never_all_at_once() -> None:
    state, pauses = core.Upstream(), []
    for _ in range(12):
        state = core.after_failure(state, 0, 0.0)
        pauses.append(state.next_at)
    assert pauses == sorted(pauses) and pauses[-1] == core.LONGEST_PAUSE_MS // 2
    assert core.after_failure(core.Upstream(), 0, 1.0).next_at > core.after_failure(core.Upstream(), 0, 0.0).next_at


def test_items_of_the_feed_arrive_once_and_in_order() -> None:
    items = [FeedItem(id=n, kind="rule") for n in (3, 1, 2)]
    assert [i.id for i in core.new_items(core.Upstream(feed=1), items)] == [2, 3]


def lease(act: str, session: str = "s", token: int = 0) -> LeaseRequest:
    return LeaseRequest(act=act, project="p", name="n", session=session, token=token, ttl_s=30)


def test_a_lease_is_one_holder_s_until_its_heartbeat_stops() -> None:
    held, outcome = core.change_lease(core.Lease(), lease("acquire"), "a", "ann", 0)
    assert (outcome, held.token) == ("granted", 1)
    assert core.change_lease(held, lease("acquire"), "b", "ben", 29_999)[1] == "busy"
    renewed, outcome = core.change_lease(held, lease("renew", token=1), "a", "ann", 20_000)
    assert (outcome, renewed.until) == ("renewed", 50_000)
    other, outcome = core.change_lease(renewed, lease("acquire"), "b", "ben", 50_000)
    assert (outcome, other.token) == ("granted", 2)
    assert core.change_lease(other, lease("renew", token=1), "a", "ann", 50_001) == (other, "lost")
    assert core.change_lease(other, lease("release", token=1), "a", "ann", 50_001) == (other, "lost")


def test_a_released_lease_keeps_its_token_so_that_the_next_is_higher() -> None:
    held, _ = core.change_lease(core.Lease(), lease("acquire"), "a", "ann", 0)
    free, outcome = core.change_lease(held, lease("release", token=1), "a", "ann", 1)
    assert (outcome, free.token, free.is_held(2)) == ("released", 1, False)
    assert core.change_lease(free, lease("acquire"), "b", "ben", 2)[0].token == 2


def test_the_holder_gives_up_before_the_server_does() -> None:
    held = core.rely_on_lease(1, 30, asked_at=1_000)
    assert held and held.until < 1_000 + 30_000


def test_a_late_answer_about_a_lease_that_was_given_back_counts_for_nothing() -> None:
    assert core.rely_on_lease(1, 30, asked_at=1_000, given_back=1) is None


def test_the_board_has_the_state_after_the_last_event_and_the_files_written() -> None:
    edit = an_event(3, session="s", data={"action": "edit", "paths": ["a.py", 7], "branch": "main"})
    read = an_event(4, session="s", data={"action": "read", "paths": ["b.py"]})
    [found] = core.sum_up_sessions([an_event(1, kind="session.started", session="s"), edit, read])
    assert (found.state, found.edited, found.branch) == ("working", {"a.py": 3}, "main")
    [waits] = core.sum_up_sessions([edit, an_event(5, kind="permission.requested", session="s")])
    assert waits.state == "waiting"


def test_a_world_with_partitions_crashes_and_wrong_clocks(tmp_path: Path) -> None:
    assert "0 lost, 0 doubled, 0 leaked, 0 held twice" in team.run(tmp_path, 3, machines=20)


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("_common_prefix", lambda _have, batch, _stored: batch.after),
        ("_is_same_log", lambda *_: True),
        ("keys_needed", lambda *_: None),
        ("is_other_log", lambda *_: False),
        # An acknowledgement that is believed although nothing was taken.
        ("after_answer", lambda state, _stream, _cursor, _gap: replace(state, cursor=max(state.cursor, state.sent))),
        ("rely_on_lease", lambda token, ttl_s, asked, _over: core.HeldLease(token, asked + ttl_s * 1300)),
        ("change_lease", lambda lease, ask, machine, who, now: grant(replace(lease, until=0), ask, machine, who, now)),
        ("new_items", lambda _state, items: list(items)),
    ],
)
def test_the_simulation_finds_a_broken_rule(tmp_path: Path, monkeypatch, name: str, broken) -> None:
    monkeypatch.setattr(core, name, broken)
    with pytest.raises(AssertionError, match="seed"):
        team.run(tmp_path, 60, machines=8)


def test_the_simulation_finds_tenants_that_are_mixed_up(tmp_path: Path, monkeypatch) -> None:
    """A server that forgets whose machine it is now and then."""
    real, count = team.Server.take_batch, itertools.count()

    def forgetful(self, tenant: str, machine: str, batch: Batch) -> core.Accepted:
        return real(self, "tenant-0" if next(count) % 50 == 0 else tenant, machine, batch)

    monkeypatch.setattr(team.Server, "take_batch", forgetful)
    with pytest.raises(AssertionError, match="seed"):
        team.run(tmp_path, 3, machines=8)


def test_a_log_that_was_replaced_is_noticed_by_what_was_sent_not_only_by_what_was_answered() -> None:
    """Found by the simulation (seed 5036): the server had a batch whose answer was lost, then the log was restored below it."""
    state = core.before_sending(core.Upstream(cursor=50), 80, "k80")
    assert not core.was_replaced(state, 90, "k80")
    assert core.was_replaced(state, 60, "") and core.was_replaced(state, 90, "another")
    assert core.restore_bound(state) == 50
    restored = core.after_restore(state, 48, "k48")
    assert (restored.stream, restored.cursor, restored.restores) == (2, 48, ((2, 48),))
