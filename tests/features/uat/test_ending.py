"""When a run is over, and what becomes of its files (S3-18 to S3-20, D9, D11, C2)."""

import os
import time

import msgspec
import pytest

from holdfast.core.event import Event
from tests.features.uat.kit import FILL, NAVIGATE, SEED_BEGAN, SESSION, URL, Lab
from tests.features.uat.policy.test_derive import begin

HOUR = 3_600_000


def test_stop_alone_does_not_end_a_run(lab: Lab) -> None:
    """S3-2, D11, C2: Stop is the end of a turn."""
    begin(lab)
    for _ in range(3):
        lab.hook("Stop", last_assistant_message="more later")
    assert lab.run["status"] == "active"
    lab.hook("UserPromptSubmit", prompt="go on")
    lab.tool(FILL, selector="#email")
    assert lab.run["calls"] == 2


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("session.ended", "session-ended"),
        ("session.lost", "process-gone"),
        ("session.stale", "session-stale"),
        ("session.closed", "session-closed"),
        ("session.left", "session-left"),
    ],
)
def test_the_end_of_the_session_ends_it(lab: Lab, kind: str, reason: str) -> None:
    begin(lab)
    lab.before(FILL, "cut off", selector="#email")
    lab.app.engine.handle([Event(key=kind, kind=kind, at=lab.now + 5, session=SESSION, project=str(lab.project))])
    run = lab.run
    assert (run["status"], run["reason"], run["outcome"]) == ("completed", reason, "interrupted")
    assert run["steps"][1]["status"] == "interrupted"
    assert lab.document["scenario"]["steps"][1]["status"] == "in_progress"
    assert [c["success"] for c in lab.document["execution"]["toolCalls"]] == [True, False]
    assert lab.document["context"]["endReason"] == reason
    assert lab.session["active"] == ""


def test_it_ends_once(lab: Lab) -> None:
    begin(lab)
    for _ in range(3):
        lab.hook("SessionEnd", reason="other", mode="tell")
        lab.now += 1000
    ended = [e for e in lab.app.store.reader().replay() if e.kind == "uat.ended"]
    assert len(ended) == 1


def test_a_last_step_that_failed_is_over_with_the_turn(lab: Lab) -> None:
    lab.scenario("name: login flow\nsteps: [{action: navigate}]\n")
    lab.hook("UserPromptSubmit", prompt="test the login flow")
    lab.failed(NAVIGATE, "net::ERR_CONNECTION_REFUSED", url=URL)
    assert lab.run["status"] == "active"
    lab.hook("Stop", last_assistant_message="it does not answer")
    assert (lab.run["status"], lab.run["outcome"]) == ("completed", "failed")


def test_a_new_run_supersedes_the_old_one_whose_file_goes_to_the_archive(lab: Lab) -> None:
    begin(lab)
    first = lab.run["id"]
    lab.work()
    lab.now += 1000
    lab.command("start", scenario="login-flow")
    lab.work()
    assert lab.doc("uat", first)["reason"] == "superseded"
    archived = msgspec.json.decode((lab.project / "uat" / "archive" / f"{first}.json").read_bytes())
    assert archived["session"]["uatSessionId"] == first
    assert archived["session"]["status"] == "completed"
    assert msgspec.json.decode(lab.file.read_bytes())["session"]["uatSessionId"] == lab.run["id"] != first


def test_24_hours_are_24_hours(lab: Lab) -> None:
    """D9: `-mtime +24` was 24 days."""
    begin(lab)
    lab.work()
    lab.now += 24 * HOUR - 60_000
    lab.tend()
    assert lab.run["status"] == "active"
    lab.now += 120_000
    lab.tend()
    assert (lab.run["status"], lab.run["reason"]) == ("completed", "expired")
    lab.tend()
    assert lab.run["archived"]
    assert not lab.file.exists()
    assert not lab.file.with_suffix(".backup").exists()
    assert (lab.project / "uat" / "archive" / f"{lab.run['id']}.json").exists()
    assert lab.replayed() == []


def test_an_ended_run_is_archived_a_day_later_with_its_lock(lab: Lab) -> None:
    """S3-20: archived first, then removed."""
    begin(lab)
    lab.command("end")
    lab.work()
    lab.file.with_suffix(".lock").write_text("1")
    lab.tend()
    assert lab.file.exists()
    lab.now += 25 * HOUR
    lab.tend()
    assert sorted(p.name for p in (lab.project / "uat" / "sessions").iterdir()) == []
    assert msgspec.json.decode((lab.project / "uat" / "archive" / f"{lab.run['id']}.json").read_bytes())


def test_rubbish_older_than_an_hour_is_swept_and_nothing_else(lab: Lab) -> None:
    """S3-19."""
    begin(lab)
    lab.work()
    folder = lab.file.parent
    outside = lab.project / "temp-precious.json"
    outside.write_text("x")
    names = ("temp-1-2.json", "temp-fresh.json", "mine.json", ".x.partial")
    for name in names:
        (folder / name).write_text("x")
    (folder / "temp-link.json").symlink_to(outside)
    (folder / "temp-folder").mkdir()
    old = time.time() - 3700
    for name in ("temp-1-2.json", "mine.json", ".x.partial", "temp-folder"):
        os.utime(folder / name, (old, old))
    lab.tend()
    left = {p.name for p in folder.iterdir()}
    assert {"temp-fresh.json", "mine.json", "temp-link.json", "temp-folder"} <= left
    assert not {"temp-1-2.json", ".x.partial"} & left
    assert outside.exists()


@pytest.mark.parametrize("where", ["sessions", "screenshots", "reports", "archive"])
def test_nothing_is_removed_through_a_link(lab: Lab, where: str) -> None:
    begin(lab)
    lab.command("end")
    lab.work()
    victim, run = lab.project.parent / "victim", lab.run["id"]
    (victim / run).mkdir(parents=True)
    kept = [victim / name for name in ("temp-1.json", f"{run}.html", f"{run}.json", lab.file.name, f"{run}/a.png")]
    for path in kept:
        path.write_text("precious")
        os.utime(path, (1, 1))
    place = lab.project / "uat" / where
    if place.exists():
        place.rename(place.with_name("moved"))
    place.symlink_to(victim)
    lab.now = SEED_BEGAN + 100 * 24 * HOUR
    lab.command("clean")
    lab.work()
    lab.tend()
    assert [path.read_text() for path in kept] == ["precious"] * len(kept)


def test_clean_removes_only_what_runs_left(lab: Lab) -> None:
    begin(lab)
    lab.command("end")
    lab.work()
    mine = lab.project / "uat" / "reports" / "mine.html"
    mine.write_text("kept")
    lab.now = SEED_BEGAN + 100 * 24 * HOUR
    lab.command("clean", dry=True)
    lab.work()
    assert lab.file.exists()
    lab.command("clean")
    lab.work()
    assert not lab.file.exists()
    assert mine.exists()
    assert (lab.project / "uat" / "scenarios" / "login-flow.yaml").exists()
    assert lab.view("list")["runs"][0]["id"] == lab.run["id"]
