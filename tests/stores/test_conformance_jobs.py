"""What every store promises about jobs: asked for in a transaction, done once, by one, and not forgotten."""

import pytest

from holdfast.core.job import ClaimedJob, Job
from holdfast.core.ports import Reader, Store
from tests.factories import NOON, a_job

LEASE = 60_000


def enqueue(store: Store, *jobs: Job, now: int = NOON) -> None:
    with store.transaction():
        store.enqueue(jobs, now)


def claim(
    store: Store, owner: str = "me", now: int = NOON, limit: int = 10, kinds: tuple = ("index",)
) -> list[ClaimedJob]:
    with store.transaction():
        return store.claim(owner, now, LEASE, limit, kinds)


def finish(store: Store, job: ClaimedJob, owner: str = "me") -> bool:
    with store.transaction():
        return store.finish(job.id, owner)


def test_a_job_is_claimed_with_its_payload_and_finished(store: Store, reader: Reader):
    enqueue(store, a_job(dedupe="d", payload={"path": "/x\x00é", "n": [1]}))
    (job,) = claim(store)
    assert (job.kind, job.dedupe, job.attempts, job.payload) == ("index", "d", 1, {"path": "/x\x00é", "n": [1]})
    assert finish(store, job)
    assert (reader.jobs(), claim(store)) == ([], [])


def test_waiting_jobs_with_the_same_dedupe_are_one_with_the_newest_payload(store: Store):
    enqueue(store, a_job(dedupe="d", run_at=NOON + 50, payload={"n": 1}), a_job(dedupe="d", payload={"n": 2}))
    enqueue(store, a_job(dedupe="d", run_at=NOON + 99, payload={"n": 3}))
    (job,) = claim(store)  # the earliest moment asked for counts
    assert job.payload == {"n": 3}


def test_jobs_without_dedupe_or_of_another_kind_are_not_merged(store: Store):
    enqueue(store, a_job(), a_job(), a_job(dedupe="d"), a_job(dedupe="d", kind="test"))
    assert len(claim(store, kinds=("index", "test"))) == 4


def test_a_job_asked_for_while_it_runs_runs_again(store: Store):
    enqueue(store, a_job(dedupe="d", payload={"n": 1}))
    (job,) = claim(store)
    enqueue(store, a_job(dedupe="d", payload={"n": 2}), a_job(dedupe="d", payload={"n": 3}))
    assert claim(store, "other") == []
    assert finish(store, job)
    (again,) = claim(store, "other")
    assert (again.payload, again.attempts) == ({"n": 3}, 1)
    assert finish(store, again, "other")
    assert claim(store) == []


def test_jobs_come_in_the_order_of_their_time_and_not_before_it(store: Store):
    enqueue(store, *(a_job(run_at=NOON + at, payload={"at": at}) for at in (30, 10, 20, 40)))
    assert claim(store, now=NOON) == []
    assert [j.payload["at"] for j in claim(store, now=NOON + 30, limit=2)] == [10, 20]
    assert [j.payload["at"] for j in claim(store, now=NOON + 30)] == [30]


def test_only_the_wanted_kinds_are_claimed(store: Store):
    enqueue(store, a_job(kind="a"), a_job(kind="b"), a_job(kind="c"))
    assert [j.kind for j in claim(store, kinds=("c", "a"))] == ["a", "c"]
    assert claim(store, kinds=()) == []


def test_whether_something_is_due_is_asked_by_kind(store: Store, reader: Reader):
    with store.transaction():
        store.enqueue([a_job(kind="index", run_at=NOON), a_job(kind="notify", run_at=NOON + 5)], NOON)
    assert reader.next_due(NOON, ["index", "notify"]) == NOON
    assert reader.next_due(NOON, ["notify"]) == NOON + 5
    assert reader.next_due(NOON, []) is None


def test_a_job_without_a_time_is_due_now(store: Store):
    enqueue(store, a_job(run_at=0), now=NOON + 5)
    assert claim(store, now=NOON + 4) == []
    assert len(claim(store, now=NOON + 5)) == 1


def test_an_expired_lease_hands_the_job_to_another(store: Store):
    enqueue(store, a_job())
    (mine,) = claim(store, "me")
    assert claim(store, "you", now=NOON + LEASE) == []
    (yours,) = claim(store, "you", now=NOON + LEASE + 1)
    assert (yours.id, yours.attempts) == (mine.id, 2)
    assert not finish(store, mine, "me")
    assert finish(store, yours, "you")


def test_a_lease_is_extended_by_its_owner_only(store: Store):
    enqueue(store, a_job())
    (job,) = claim(store)
    with store.transaction():
        assert store.extend(job.id, "me", NOON + 10 * LEASE)
        assert not store.extend(job.id, "you", NOON + 99 * LEASE)
        assert not store.extend(job.id + 1, "me", NOON)
    assert claim(store, "you", now=NOON + 9 * LEASE) == []
    assert len(claim(store, "you", now=NOON + 11 * LEASE)) == 1


def test_a_failed_job_is_tried_again_later_and_counted(store: Store, reader: Reader):
    enqueue(store, a_job())
    for attempt, now in enumerate((NOON, NOON + 100, NOON + 200), 1):
        (job,) = claim(store, now=now)
        assert job.attempts == attempt
        with store.transaction():
            assert not store.retry(job.id, "you", now, "not yours", dead=False)
            assert store.retry(job.id, "me", now + 100, f"failed \x00 {attempt}", dead=False)
        assert claim(store, now=now + 99) == []
    (row,) = reader.jobs()
    assert (row["error"], row["attempts"], row["owner"], row["run_at"]) == ("failed \x00 3", 3, "", NOON + 300)


def test_a_dead_job_stays_to_be_seen_and_does_not_stand_in_the_way(store: Store, reader: Reader):
    enqueue(store, a_job(dedupe="d"))
    (job,) = claim(store)
    with store.transaction():
        assert store.retry(job.id, "me", NOON, "gave up", dead=True)
    assert claim(store, now=NOON + 10 * LEASE) == []
    enqueue(store, a_job(dedupe="d"))
    assert len(claim(store)) == 1
    assert sorted(row["dead"] for row in reader.jobs()) == [0, 1]
    assert reader.jobs(limit=1)[0]["error"] == "gave up"


def test_release_gives_all_jobs_of_an_owner_back_uncounted(store: Store):
    enqueue(store, a_job(), a_job(), a_job())
    claim(store, "me", limit=2)
    claim(store, "you")
    with store.transaction():
        assert store.release("me") == 2
        assert store.release("nobody") == 0
    assert [j.attempts for j in claim(store, "you")] == [1, 1]


def test_a_claim_is_part_of_its_transaction(store: Store):
    enqueue(store, a_job())
    with pytest.raises(ZeroDivisionError), store.transaction():
        assert store.claim("me", NOON, LEASE, 1, ("index",))
        raise ZeroDivisionError
    (job,) = claim(store, "you")
    assert job.attempts == 1
