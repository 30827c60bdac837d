"""The index's file: a search after a start finds what it found before, and the file never knows more than the log."""

import random
from pathlib import Path

import pytest

from holdfast.features.memory import jobs
from holdfast.features.memory.index import catalogue as module
from holdfast.features.memory.index import index_file
from holdfast.features.memory.index.ranking import Postings
from tests.features.memory.harness import MemoryHarness

WORDS = "parser importer index store gate lease hook daemon token budget session memory table column cache".split()


def talk(house: MemoryHarness, turns: int = 12) -> None:
    chance = random.Random(7)
    for n in range(turns):
        words = " ".join(chance.sample(WORDS, 4))
        house.turn(f"Always remember part{n} is about {words}.", f"Done with {words}?", session=f"s-{n % 3}")
    house.command("add", text="The staging key rotates on Mondays")


def found(house: MemoryHarness) -> list[tuple[str, float, list[int]]]:
    questions = ("parser index", "which part is about the budget", "staging key", "src/app.py", "done with the cache")
    return [
        (hit["id"], hit["score"], hit["evidence"])
        for question in questions
        for hit in house.view("search", query=question, limit=20)["hits"]
    ]


def no_reading(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the events that were read from the log from now on."""
    read: list[int] = []
    take = module.Catalogue._index_event
    monkeypatch.setattr(
        module.Catalogue, "_index_event", lambda self, event: (read.append(event.seq), take(self, event))[1]
    )
    return read


def test_after_a_start_everything_is_found_as_before(house: MemoryHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    talk(house)
    before = found(house)
    house.keep_index()
    house.restarted()
    read = no_reading(monkeypatch)
    assert found(house) == before
    assert read == []


def test_what_came_since_is_read_from_the_log(house: MemoryHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    talk(house)
    house.keep_index()
    head = house.reader.head()
    talk(house, 5)
    house.turn("The marmalade is in the cellar", session="s-1")
    whole = found(house)
    house.restarted()
    read = no_reading(monkeypatch)
    assert found(house) == whole
    assert min(read) > head
    house.keep_index()
    house.restarted()
    assert found(house) == whole
    assert house.view("search", query="marmalade")["hits"]


@pytest.mark.parametrize("content", [b"", b"PK", b"\x00" * 5000, None])
def test_a_damaged_file_is_as_good_as_none(house: MemoryHarness, content: bytes | None) -> None:
    talk(house)
    before = found(house)
    place = house.keep_index()
    place.write_bytes(place.read_bytes()[:-700] if content is None else content)
    house.restarted()
    assert found(house) == before


def test_arrays_that_do_not_fit_are_refused(house: MemoryHarness) -> None:
    talk(house)
    before = found(house)
    place = house.keep_index()
    arrays, about = index_file.read_index(place) or ({}, {})
    for wrong in ("lengths", "seqs", "begins", "last"):
        place.write_bytes(index_file.pack_index({**arrays, wrong: arrays[wrong][:-1]}, about))
        house.restarted()
        assert found(house) == before, wrong
    for wrong in ("words", "sessions", "seq", "ids"):
        place.write_bytes(
            index_file.pack_index(arrays, {name: value for name, value in about.items() if name != wrong})
        )
        house.restarted()
        assert found(house) == before, wrong


def test_a_file_of_another_log_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, other = MemoryHarness(tmp_path / "a"), MemoryHarness(tmp_path / "b")
    talk(one)
    for n in range(60):
        other.turn(f"something else {n}")
    place = one.keep_index()
    index_file.index_path(tmp_path / "b").parent.mkdir()
    index_file.index_path(tmp_path / "b").write_bytes(place.read_bytes())
    assert other.view("search", query="staging key")["hits"] == []
    assert other.view("search", query="something else")["hits"]
    one.close()
    other.close()


@pytest.fixture
def far_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time for catching up, and a log that counts as long."""
    for name, value in {"SPEND_S": -1.0, "BEHIND": 20, "PAGE": 10, "NEWEST": 10}.items():
        monkeypatch.setattr(module, name, value)


@pytest.mark.usefixtures("far_behind")
def test_a_search_far_behind_says_what_it_left_out(house: MemoryHarness) -> None:
    house.turn("The marmalade is in the cellar")
    talk(house, 30)
    house.turn("The zebra is in the garden")
    house.restarted()
    first = house.view("search", query="zebra marmalade")
    assert first["left"] > 20
    said = {hit["text"] for hit in first["hits"]}
    assert {"The zebra is in the garden", "The marmalade is in the cellar"} <= said
    left = [first["left"], *(house.view("search", query="zebra")["left"] for _ in range(20))]
    assert left == sorted(left, reverse=True)
    assert left[-1] == 0


@pytest.mark.usefixtures("far_behind")
def test_a_file_written_meanwhile_is_taken_up(house: MemoryHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    talk(house, 30)
    house.restarted()
    assert house.view("search", query="parser")["left"]
    house.keep_index()
    read = no_reading(monkeypatch)
    assert house.view("search", query="parser")["left"] == 0
    assert read == []


@pytest.mark.usefixtures("far_behind")
def test_a_damaged_file_written_meanwhile_is_tried_once(house: MemoryHarness) -> None:
    talk(house, 30)
    house.restarted()
    assert house.view("search", query="parser")["left"]
    house.keep_index().write_bytes(b"PK")
    assert [house.view("search", query="parser")["left"] for _ in range(20)][-1] == 0


def test_what_was_forgotten_leaves_the_file(house: MemoryHarness) -> None:
    """The daemon empties the folder; here the index itself does, as soon as it hears that the log was rewritten."""
    talk(house)
    place = house.keep_index()
    house.hook("state.rebuilt", features=["memory"])
    assert found(house)
    assert not place.exists()
    assert index_file.indexed_until(place) == 0
    before = found(house)
    house.keep_index()
    assert place.exists()
    house.restarted()
    assert found(house) == before


def test_a_rewrite_while_the_file_is_written_takes_it_away(
    house: MemoryHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(house)
    dump = module.Catalogue.dump

    def then_rewritten(self):
        made = dump(self)
        house.hook("state.rebuilt", features=["memory"])
        return made

    monkeypatch.setattr(module.Catalogue, "dump", then_rewritten)
    assert not house.keep_index().exists()


def test_the_job_does_nothing_until_there_is_enough(house: MemoryHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small log is read in a blink, and numpy need not be loaded for it."""
    talk(house)
    monkeypatch.setattr(jobs, "WORTH", house.reader.head() + 1)
    assert not house.keep_index(always=False).exists()
    monkeypatch.setattr(jobs, "WORTH", house.reader.head())
    place = house.keep_index(always=False)
    assert index_file.indexed_until(place) > 0
    assert place.stat().st_mode & 0o077 == 0


def test_words_added_and_words_settled_are_the_same() -> None:
    import numpy as np

    chance, one, other = random.Random(3), Postings(np), Postings(np)
    for number in range(300):
        counts = {chance.choice(WORDS): chance.randint(1, 5) for _ in range(4)}
        one.add(number, counts)
        other.add(number, counts)
        if chance.random() < 0.1:
            other.flush_pending()
    for word in [*WORDS, "nothing"]:
        mine, theirs = one.of(word), other.of(word)
        assert all((a == b).all() for a, b in zip(mine, theirs, strict=True))
