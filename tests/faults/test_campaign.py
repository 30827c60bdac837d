"""A small sample of every campaign (`make campaign` runs them at full size)."""

from pathlib import Path

import pytest

from tests.campaign import (
    authority,
    damage,
    erase,
    full_disk,
    imports,
    indexing,
    kills,
    malformed,
    model,
    power,
    racing,
    stopped,
    thrice,
    tracing,
    undo,
    updates,
    verdicts,
)
from tests.campaign.steps import PIECES, broken, delivery

pytestmark = pytest.mark.fault
needs_strace = pytest.mark.skipif(not tracing.can_trace(), reason="strace is not there or may not trace")


def sampled(scenario, folder: Path, size: int, **more) -> str:
    try:
        return scenario.run(folder, size, **more)
    except NotImplementedError as reason:
        pytest.skip(str(reason))


@pytest.mark.quick
def test_kill_9_of_daemon_and_hooks_under_eight_clients(tmp_path: Path) -> None:
    """P2, P3."""
    assert "0 lost" in sampled(kills, tmp_path, 5)


@pytest.mark.quick
def test_what_a_call_destroys_is_brought_back(tmp_path: Path) -> None:
    """Issue 37."""
    assert "100 % restored, 0 wrong" in sampled(undo, tmp_path, 12)


def test_an_import_that_is_killed_goes_on(tmp_path: Path) -> None:
    """Issue 17, point 6: resumable, and twice is once."""
    assert "every prompt once" in sampled(imports, tmp_path, 10)


def test_power_cuts(tmp_path: Path) -> None:
    """P2."""
    assert "0 lost" in sampled(power, tmp_path, 3)


def test_a_full_disk_and_room_again(tmp_path: Path) -> None:
    """P1, P2."""
    assert "0 lost" in sampled(full_disk, tmp_path, 2)


def test_updates_of_one_document_are_exact(tmp_path: Path) -> None:
    """P4."""
    assert "exactly 400" in sampled(updates, tmp_path, 400, processes=8)


@pytest.mark.quick
def test_each_delivery_three_times_is_one_event(tmp_path: Path) -> None:
    """P3."""
    assert "= 40 events" in sampled(thrice, tmp_path, 40)


def test_a_stopped_daemon_holds_nobody_up(tmp_path: Path) -> None:
    """P1, P6."""
    assert "0 lost" in sampled(stopped, tmp_path, 1)


def test_eight_daemons_at_once(tmp_path: Path) -> None:
    """P6; tests/daemon races 32."""
    assert "1 left" in sampled(racing, tmp_path, 1, daemons=8)


def test_malformed_payloads(tmp_path: Path) -> None:
    """P1."""
    assert "500 answered" in sampled(malformed, tmp_path, 500)


def test_damage_at_random_places(tmp_path: Path) -> None:
    """P7."""
    assert "counted and said" in sampled(damage, tmp_path, len(damage.WAYS))


def test_any_interleaving_of_deliveries_crashes_and_drains(tmp_path: Path) -> None:
    """P3, P5."""
    assert "equal to the model" in sampled(model, tmp_path, 10)


def test_kill_9_of_an_index_run(tmp_path: Path) -> None:
    """Issue 7: the next run makes what a first one would make."""
    assert "equal to a fresh one" in sampled(indexing, tmp_path, 8)


def test_death_at_any_call_of_an_erasure(tmp_path: Path) -> None:
    """Issue 19: it is done, or done at the next start."""
    assert "0 leftovers" in sampled(erase, tmp_path, 4)


@needs_strace
@pytest.mark.parametrize("piece", PIECES, ids=lambda piece: piece.name)
def test_death_or_a_full_disk_at_any_call(tmp_path: Path, piece) -> None:
    """P2, P7: what was promised is there once; files are old or new."""
    assert broken(tmp_path, piece, 1, ("ENOSPC",)) == 3


@needs_strace
def test_death_or_a_failing_disk_at_any_call_of_a_delivery(tmp_path: Path) -> None:
    """P1, P2, P3."""
    assert delivery(tmp_path, 3, ("EIO",)) == 9


def test_gate_questions_while_the_daemon_is_stopped_and_continued(tmp_path: Path) -> None:
    """Issue 16: 0 wrong, 0 lost verdicts unrecorded."""
    assert "0 wrong" in sampled(verdicts, tmp_path, 30, load=10)


def test_approvals_and_removals_in_random_histories(tmp_path: Path) -> None:
    assert "no approval used twice, every removal proved" in sampled(authority, tmp_path, 3)
