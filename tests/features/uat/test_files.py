"""The session's file: a view of the log, always whole again (S3-1, S3-13, S3-24, D8, D9, O3-a)."""

import json
import os
import random
import stat

import pytest

from holdfast.features.uat.file_names import safe_file_name
from holdfast.features.uat.jobs.session_file import file_condition
from tests.features.uat.kit import FILL, NAVIGATE, SESSION, URL, Lab
from tests.features.uat.policy.test_derive import begin


def test_file_and_backup_are_what_the_log_says(lab: Lab) -> None:
    """D9: backups are really written."""
    begin(lab)
    lab.work()
    assert json.loads(lab.file.read_bytes()) == json.loads(json.dumps(lab.document))
    assert lab.file.with_suffix(".backup").read_bytes() == lab.file.read_bytes()
    lab.tool(FILL, selector="#email")
    lab.work()
    assert json.loads(lab.file.read_bytes())["performance"]["toolCallCount"] == 2


def test_it_comes_back_from_damage_at_random_places(lab: Lab) -> None:
    begin(lab)
    lab.work()
    whole, dice = lab.file.read_bytes(), random.Random(6)
    for _ in range(60):
        damaged = bytearray(whole)
        for _ in range(dice.randint(1, 5)):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        lab.file.write_bytes(bytes(damaged[: dice.randrange(len(damaged))] if dice.random() < 0.3 else damaged))
        lab.command("recover")
        lab.work()
        assert lab.file.read_bytes() == whole


@pytest.mark.parametrize("damage", ["missing", "empty", "text", "a digit", "folderless"])
def test_damage_is_found_without_being_asked(lab: Lab, damage: str) -> None:
    begin(lab)
    lab.work()
    whole = lab.file.read_bytes()
    if damage in ("missing", "folderless"):
        lab.file.unlink()
    if damage == "folderless":
        lab.file.with_suffix(".backup").unlink()
        lab.file.parent.rmdir()
    if damage in ("empty", "text", "a digit"):
        lab.file.write_bytes({"empty": b"", "text": b"{oops", "a digit": whole.replace(b"95", b"96")}[damage])
    lab.tend()
    assert lab.file.read_bytes() == whole
    assert lab.run["restored"] == 1
    lab.tend()
    assert lab.run["restored"] == 1


def test_a_write_that_changes_nothing_touches_nothing(lab: Lab) -> None:
    begin(lab)
    lab.work()
    before = lab.file.stat().st_mtime_ns
    lab.command("recover")
    lab.work()
    assert lab.file.stat().st_mtime_ns == before


@pytest.mark.parametrize("where", ["uat", "uat/sessions", "uat/screenshots", "uat/archive", "uat/reports"])
def test_a_link_that_leads_out_of_the_project_is_not_followed(lab: Lab, where: str) -> None:
    """A repository may hold any link."""
    victim = lab.project.parent / "victim"
    victim.mkdir()
    place = lab.project / where
    if where != "uat":
        lab.scenario()
        place.symlink_to(victim)
        begin(lab)
    else:
        (victim / "scenarios").mkdir()
        place.symlink_to(victim)
        lab.scenario()
        lab.command("start", scenario="login-flow")
    lab.command("end")
    lab.work()
    lab.tend()
    left = [p for p in victim.rglob("*") if p.is_file() and p.suffix != ".yaml"]
    assert left == []
    if where in ("uat", "uat/sessions"):
        assert any(
            "plain folder" in w["message"] or "leads out" in w["message"] for w in lab.document["execution"]["warnings"]
        )


@pytest.mark.parametrize(
    "name", ["../../evil", "/etc/passwd", "a/b", "..", ".", "", "x" * 5000, "a\0b", "ü", "-rf", ".hidden"]
)
def test_hostile_names_stay_in_their_folder(name: str) -> None:
    made = safe_file_name(name)
    assert "/" not in made
    assert ".." not in made
    assert 0 < len(made) <= 130
    assert made[0] not in ".-"
    assert safe_file_name(name) == made
    assert safe_file_name(name + "x") != made


def test_a_hostile_session_id_writes_one_file_in_the_folder(lab: Lab) -> None:
    lab.scenario()
    session = "../../../evil\n$(rm -rf)"
    lab.hook("UserPromptSubmit", prompt="Please test the login flow scenario", session=session)
    lab.tool(NAVIGATE, url=URL, session=session)
    lab.work()
    files = sorted(p.relative_to(lab.project) for p in lab.project.rglob("*.json"))
    assert all(str(p).startswith("uat/sessions/claude-session-") for p in files)
    assert len(files) == 1
    assert list(lab.project.parent.glob("evil*")) == []


def test_files_are_not_for_others_to_write(lab: Lab) -> None:
    begin(lab)
    lab.work()
    assert not stat.S_IMODE(os.stat(lab.file).st_mode) & 0o022


def test_condition(lab: Lab) -> None:
    """S3-14, S3-18: unreadable = not there."""
    path = lab.project / "x.json"
    assert file_condition(path) == "missing"
    for text in ("", "{", "[]", '{"meta": {}}', "null", "[" * 100_000):
        path.write_text(text)
        assert file_condition(path) == "damaged"


def test_a_session_that_is_gone_from_disk_stays_in_the_log(lab: Lab) -> None:
    import shutil

    begin(lab)
    lab.work()
    shutil.rmtree(lab.project)
    lab.command("end")
    lab.work()
    lab.tend()
    assert lab.run["outcome"] == "incomplete"
    assert not lab.project.exists()
    assert SESSION in lab.document["session"]["claudeSessionId"]
