"""Finding again: what fits, near what fits, exact names first, nothing that was forgotten."""

import pytest

from holdfast.core.errors import CommandRefused
from holdfast.features.memory.index.ranking import Ranking
from tests.features.memory.harness import MemoryHarness


def ids(house: MemoryHarness, query: str, **args) -> list[str]:
    return [hit["id"] for hit in house.view("search", query=query, **args)["hits"]]


def test_words_are_found_whatever_their_ending(house: MemoryHarness) -> None:
    house.turn("The importer crashes on empty files")
    house.turn("Paint the button green")
    assert ids(house, "importing an empty file crashed")[0] == "e1"


def test_an_answer_without_the_words_is_found_by_what_went_before(house: MemoryHarness) -> None:
    house.turn("Which port does the gateway listen on?", "It is eighty eighty one.")
    for n in range(5):
        house.turn(f"unrelated words number {n}", "nothing", session=f"other-{n}")
    assert ids(house, "gateway port")[:2] == ["e1", "e2"]


def test_exact_names_come_first(house: MemoryHarness) -> None:
    house.turn("we parse each header in the parser, parse header, header parse")
    house.turn("look at parseHeader in src/http.py", session="s-2")
    named = house.view("around", id=ids(house, "parseHeader")[0])["said"]
    assert named[0]["text"] == "look at parseHeader in src/http.py"
    assert ids(house, "src/http.py")[0] == ids(house, "parseHeader")[0]


def test_a_project_is_searched_by_itself_unless_asked(house: MemoryHarness) -> None:
    house.turn("The gateway listens on 8081", project="/home/ada/other")
    assert ids(house, "gateway") == []
    assert ids(house, "gateway", everywhere=True)[0] == "e1"


def test_by_type_and_by_time(house: MemoryHarness) -> None:
    house.turn("Always use port 8081 for the gateway.")
    house.turn("the gateway answers slowly")
    [hit] = house.view("search", query="gateway", type="rule")["hits"]
    assert (hit["type"], hit["id"]) == ("rule", "e1")
    later = house.clock() + 1
    house.turn("the gateway again")
    [hit, *_] = house.view("search", query="gateway", since=later)["hits"]
    assert hit["text"] == "the gateway again"


def test_what_is_new_is_found_at_once(house: MemoryHarness) -> None:
    house.turn("first words")
    assert ids(house, "zebra") == []
    house.turn("a zebra came by")
    assert ids(house, "zebra")


def test_a_memory_in_ones_own_words(house: MemoryHarness) -> None:
    doc = house.command("add", text="The staging key rotates on Mondays", type="gotcha")
    assert ids(house, "when does the staging key rotate")[0] == doc["id"]
    shown = house.view("show", id=doc["id"][:6])
    assert (shown["text"], shown["origin"]) == ("The staging key rotates on Mondays", "user")


def test_the_three_layers(house: MemoryHarness) -> None:
    house.turn("one", "uno")
    house.turn("Always use port 8081 for the gateway.", "dos")
    house.turn("three", "tres")
    [hit, *_] = house.view("search", query="gateway port")["hits"]
    said = house.view("around", id=hit["id"], limit=2)["said"]
    assert [one["text"] for one in said][:3] == ["one", "uno", "Always use port 8081 for the gateway."]
    whole = house.view("show", id=hit["memory"])
    assert [event["seq"] for event in whole["evidence"]] == [hit["seq"]]


def test_what_was_told_can_be_seen(house: MemoryHarness) -> None:
    house.turn("Always use port 8081 for the gateway.")
    house.ask("session.started", session="s-2", source="startup")
    [row] = house.view("injected")["injected"]
    assert (row["session"], row["moment"], row["source"]) == ("s-2", "session.started", "memory")
    assert "port 8081" in row["text"]


@pytest.mark.parametrize("words", ["", "   ", None])
def test_a_search_needs_words(house: MemoryHarness, words: str | None) -> None:
    with pytest.raises(CommandRefused):
        house.view("search", query=words)


@pytest.mark.parametrize("query", ["?!", "\x00", "the of and", "a" * 5000, '" OR 1=1 --', "\ud83d"])
def test_odd_questions_are_answered(house: MemoryHarness, query: str) -> None:
    house.turn("something ordinary")
    assert isinstance(house.view("search", query=query)["hits"], list)


@pytest.mark.parametrize("wanted", ["", "m", "zzzz", "e0", "e999999999999999999999", "-1", "e1'"])
def test_an_unknown_id_is_refused_with_a_hint(house: MemoryHarness, wanted: str) -> None:
    with pytest.raises(CommandRefused, match="holdfast memory search"):
        house.view("show", id=wanted)


def test_many_texts_of_many_sessions_keep_their_neighbours() -> None:
    """Texts of sessions come interleaved; neighbours are those of the same session."""
    ranking = Ranking()
    for n in range(40):
        for session in ("a", "b"):
            ranking.add(session, "the needle" if (session, n) == ("a", 20) else f"hay {n}")
    scores = ranking.scores("needle")
    found = [n for n in range(80) if scores[n] > 0]
    assert found == [36, 38, 40, 42, 44]
    assert scores.argmax() == 40


def test_words_of_like_meaning_count() -> None:
    def alike(word: str) -> list[tuple[str, float]]:
        return [("automobil", 0.9), ("truck", 0.8)] if word == "car" else []

    for known, expected in ((None, False), (alike, True)):
        ranking = Ranking(known)
        ranking.add("a", "the automobile is red")
        for n in range(5):
            ranking.add(f"b{n}", "bread and butter")
        assert (ranking.scores("car")[0] > 0) == expected


@pytest.mark.parametrize(
    ("word", "other"), [("vacation", "trip"), ("doctor", "physician"), ("vacations", "trip"), ("delete", "remove")]
)
def test_everyday_words_and_programmers_words(word: str, other: str) -> None:
    from holdfast.features.memory.index.similar_words import similar_words
    from holdfast.features.memory.state.words import stem_word

    assert stem_word(other) in dict(similar_words(word))
    assert stem_word("marmalade") not in dict(similar_words(word))


def test_an_unknown_word_is_like_nothing() -> None:
    from holdfast.features.memory.index.similar_words import similar_words

    assert similar_words("zxqwv") == ()


def test_an_unknown_type_is_refused(house: MemoryHarness) -> None:
    with pytest.raises(CommandRefused, match="there is no type 'decisoin'"):
        house.view("search", query="gateway", type="decisoin")


def test_what_named_its_own_end_is_shown_as_expired(house: MemoryHarness) -> None:
    doc = house.command("add", text="Until 2020-01-31 all merges to main need an approval", type="rule")
    [hit] = house.view("search", query="merges main approval", type="rule")["hits"]
    assert hit["status"] == house.view("show", id=doc["id"])["status"] == "expired"
    assert [one["expired"] for one in house.view("listed")["observations"]] == [True]


def test_of_several_memories_of_a_moment_the_one_that_holds_is_shown(house: MemoryHarness) -> None:
    house.turn("Remember that the gateway timeout is 30 seconds. Always sign commits to main.")
    house.turn("Remember that the gateway timeout is 60 seconds.")
    first = next(hit for hit in house.view("search", query="sign commits main")["hits"] if hit["seq"] == 1)
    assert first["status"] == "active"
    assert house.view("show", id=first["memory"])["text"] == "Always sign commits to main."


def test_an_ok_is_no_answer(house: MemoryHarness) -> None:
    house.turn("Which port does the gateway listen on?", "ok")
    assert [hit["text"] for hit in house.view("search", query="gateway port")["hits"]] == [
        "Which port does the gateway listen on?"
    ]
    assert [hit["text"] for hit in house.view("search", query="ok")["hits"]][0] == "ok"
