"""What becomes a memory (S4-6, S4-14, O4-f)."""

import re

import pytest

from holdfast.core.errors import CommandRefused
from holdfast.features.memory.state.documents import memory_id, observation_ref
from tests.features.memory.harness import MemoryHarness
from tests.harness import PROJECT

DOUBTFUL = "The gateway needs two certificates."


def propose(house: MemoryHarness) -> None:
    """A candidate, as a teammate's shared memory arrives."""
    identity = memory_id(PROJECT, "fact", DOUBTFUL)
    house.hook("memory.observed", session="", id=identity, status="candidate", type="fact", text=DOUBTFUL)


def texts(house: MemoryHarness, type_: str = "") -> list[str]:
    return [doc["text"] for doc in house.memories(type_)]


def test_a_decision_of_the_user_is_kept_with_its_evidence(house: MemoryHarness) -> None:
    house.turn("Please look at the store. Always use PostgreSQL for the event store.")
    [doc] = house.memories("rule")
    assert doc["text"] == "Always use PostgreSQL for the event store."
    assert (doc["origin"], doc["importance"], doc["evidence"]) == ("user", 8, [1])


def test_a_question_is_no_decision(house: MemoryHarness) -> None:
    house.turn("Should we go with PostgreSQL? What if we decided to use SQLite?")
    assert house.memories() == []


def test_another_command_is_no_variant(house: MemoryHarness) -> None:
    house.prompt("run the tests")
    house.ran("npm test", ok=False, output="no")
    house.ran("docker compose up -d database")
    house.stop()
    assert house.memories() == []


def test_a_candidate_is_kept_in_other_words(house: MemoryHarness) -> None:
    propose(house)
    [doc] = house.memories(status="candidate")
    house.command("keep", id=doc["id"], text="The gateway speaks HTTP/2 only.", type="rule")
    assert [(d["text"], d["type"]) for d in house.memories()] == [("The gateway speaks HTTP/2 only.", "rule")]
    assert house.memories(status="candidate") == []
    [hit] = house.view("search", query="gateway speaks", type="rule")["hits"]
    assert hit["text"] == "The gateway speaks HTTP/2 only."
    assert house.replayed() == []


def test_what_was_dropped_does_not_come_again(house: MemoryHarness) -> None:
    propose(house)
    [doc] = house.memories(status="candidate")
    house.command("drop", id=doc["id"])
    house.turn(f"Remember that {DOUBTFUL}")
    assert house.memories(status="candidate") == house.memories() == []
    with pytest.raises(CommandRefused, match="not a candidate"):
        house.command("keep", id=doc["id"])


def test_only_a_person_keeps_a_candidate(house: MemoryHarness) -> None:
    propose(house)
    [doc] = house.memories(status="candidate")
    with pytest.raises(CommandRefused, match="a person's to do"):
        house.command("keep", id=doc["id"], session="s-1")


def test_a_newer_value_replaces_the_older_one_and_another_subject_stays(house: MemoryHarness) -> None:
    house.turn("remember that the upstream timeout is 30 seconds")
    house.turn("remember that sessions end after 12 hours")
    house.turn("remember that the upstream timeout is 60 seconds")
    told = house.ask("session.started", session="s-2", source="startup")[0]
    assert "30 seconds" not in told and "12 hours" in told and "60 seconds" in told


def test_a_line_carries_its_date_and_whose_words_it_is(house: MemoryHarness) -> None:
    house.turn("Always use tabs in makefiles.")
    [told] = house.ask("session.started", session="s-2", source="startup")
    assert re.search(r"- rule \(\d{4}-\d\d-\d\d, user's words\): Always", told)


def test_an_end_that_was_named_ends_the_telling(house: MemoryHarness) -> None:
    house.command("add", text="for today all deploys need Tom's ok", type="rule")
    assert "Tom's" in house.ask("session.started", session="s-2", source="startup")[0]
    house.clock.tick(3 * 86_400_000)
    assert house.ask("session.started", session="s-3", source="startup") == []


def test_a_newer_summary_of_a_session_replaces_the_older(house: MemoryHarness) -> None:
    house.turn("tidy up")
    for text in ("tidy up: half of it.", "tidy up: all of it."):
        house.hook("session.summarised", title="tidy up", text=text, files=[])
    assert texts(house, "session_summary") == ["tidy up: all of it."]


def test_the_same_words_again_are_one_memory(house: MemoryHarness) -> None:
    for _ in range(3):
        house.turn("From now on run make lint before each commit.")
    [doc] = house.memories("rule")
    assert doc["times"] == 3
    assert len(doc["evidence"]) == 3


def test_a_newer_decision_supersedes_the_older_one_and_both_stay(house: MemoryHarness) -> None:
    house.turn("From now on use PostgreSQL for the event store.")
    house.turn("From now on use SQLite instead of PostgreSQL for the event store.")
    assert texts(house, "rule") == ["use SQLite instead of PostgreSQL for the event store."]
    [old] = house.memories("rule", status="superseded")
    assert old["superseded_by"] == house.memories("rule")[0]["id"]


def test_two_decisions_on_two_subjects_stay_both(house: MemoryHarness) -> None:
    house.turn("Always use PostgreSQL for the event store.")
    house.turn("Always use Redis as a cache of pages.")
    assert len(house.memories("rule")) == 2


def test_a_request_is_kept_with_its_prompt_however_the_turn_ends(house: MemoryHarness) -> None:
    """O4-f: a missing Stop."""
    house.prompt("Always use tabs in makefiles.")
    assert texts(house) == ["Always use tabs in makefiles."]
    house.prompt("go on")
    house.stop()
    assert house.memories()[0]["times"] == 1


def test_what_is_planned_weighs_less(house: MemoryHarness) -> None:
    """O4-f."""
    house.turn("Always use tabs in makefiles.", mode="plan")
    assert house.memories()[0]["importance"] == 5


def test_a_correction_made_in_two_sessions_waits_for_a_person(house: MemoryHarness) -> None:
    house.turn("no, use pnpm for installing packages")
    house.turn("do not use npm install")
    assert house.memories(status="candidate") == house.memories() == []
    house.turn("Use pnpm for installing the packages.", session="s-2")
    [waiting] = house.memories(status="candidate")
    assert "pnpm for installing" in waiting["text"]
    assert house.memories() == []
    assert house.ask("session.started", session="s-3", source="startup") == []


def test_what_was_said_about_the_moment_twice_is_no_rule(house: MemoryHarness) -> None:
    for session in ("s-1", "s-2", "s-3"):
        house.turn("dont make any changes yet.", session=session)
        house.turn("don't commit this now, only look at it", session=session)
    assert house.memories(status="candidate") == house.memories() == []


def test_a_stop_that_is_told_twice_counts_once(house: MemoryHarness) -> None:
    house.turn("Always use tabs in makefiles.")
    house.stop("Done again.", again=True)
    assert [doc["times"] for doc in house.memories("rule")] == [1]


def test_no_more_than_eight_from_one_turn_and_five_at_most_while_planning(house: MemoryHarness) -> None:
    """O4-f."""
    house.turn(" ".join(f"Always build part {n}{n} with library number {n}." for n in range(30)), mode="plan")
    found = house.view("listed", limit=100)["observations"]
    assert 1 <= len(found) <= 8


def test_excluded_paths_and_commands_are_not_remembered(tmp_path) -> None:
    house = MemoryHarness(tmp_path, exclude_paths=("*/secret/*",), exclude_commands=("vault *",))
    house.prompt("run")
    house.ran("vault read --fast x", ok=False, output="no")
    house.ran("vault read --slow x")
    house.stop()
    assert house.memories() == []
    house.close()


def test_a_summary_of_a_session_becomes_a_memory(house: MemoryHarness) -> None:
    """S4-7."""
    house.turn("tidy up")
    house.hook("session.summarised", title="tidy up", text="tidy up: 1 prompts, 0 tool calls.", files=[])
    assert [doc["type"] for doc in house.memories()] == ["session_summary"]


def test_switched_off_nothing_is_observed(tmp_path) -> None:
    house = MemoryHarness(tmp_path, enabled=False)
    house.turn("Always use tabs in makefiles.")
    assert house.memories() == []
    house.close()


def test_what_was_forgotten_is_not_learned_again(house: MemoryHarness) -> None:
    house.turn("Always use tabs in makefiles.")
    [doc] = house.memories()
    house.command("forget", id=doc["id"])
    house.turn("Always use tabs in makefiles.")
    assert house.memories() == []
    tombstone = house.load_document(observation_ref(doc["id"]))
    assert tombstone and (tombstone.status, tombstone.text, tombstone.detail) == ("forgotten", "", "")


HOSTILE = ("a" * 4000, "-" * 4000, "<a>" * 1300, "./" * 2000, "use " * 1000, "`" * 4000, "a.b" * 1300, "<" * 4000)


def test_no_text_holds_a_hook_up(house: MemoryHarness) -> None:
    import time

    for text in HOSTILE:
        began = time.perf_counter()
        house.turn(text, text)
        assert time.perf_counter() - began < 2, text[:10]


def test_a_teammates_words_stay_his_when_they_are_kept(house: MemoryHarness) -> None:
    """Several people in one project: what came from another is told to nobody before it is kept, and then as his."""
    house.turn("Remember that deploys happen on tuesdays.")
    shared = {"type": "rule", "text": "Migrations are always reversible.", "origin": "outside", "words_of": "ben"}
    house.hook("memory.observed", session="", id="team-m1", status="candidate", **shared)
    assert "reversible" not in house.ask("session.started", session="s-2", source="startup")[0]
    house.command("keep", id="team-m1")
    [told] = house.ask("session.started", session="s-3", source="startup")
    assert "ben's words, kept by the user): Migrations are always reversible." in told
    assert "user's words): deploys happen on tuesdays." in told
    assert house.view("show", id="team-m1")["words_of"] == "ben"
    assert house.replayed() == []


def test_what_an_agent_proposed_stays_the_agents_words(tmp_path) -> None:
    house = MemoryHarness(tmp_path, agent_proposes=True)
    doc = house.command("add", text="The gateway restarts at noon", type="fact", session="s-1")
    house.command("keep", id=doc["id"])
    [*_, told] = house.ask("session.started", session="s-2", source="startup")
    assert "agent's words, kept by the user): The gateway restarts at noon" in told
    house.command("add", text="The importer needs four gigabytes", type="fact", session="s-1")
    [other] = house.memories(status="candidate")
    house.command("keep", id=other["id"], text="The importer needs eight gigabytes")
    [*_, told] = house.ask("session.started", session="s-3", source="startup")
    assert "user's words): The importer needs eight gigabytes" in told
    house.close()
