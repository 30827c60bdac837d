"""Which statements hold at the end: figures on labelled chains, and the rules one by one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.features.memory.validity import Statement, valid_statements
from holdfast.features.memory.validity.parse import parse_statement
from holdfast.features.memory.validity.relations import (
    any_rule,
    have_common_ground,
    may_contradict,
    replacement_strength,
)
from holdfast.statements.observe import observe_prompt
from tests.features.memory.corpus import read_cases, read_own_chains


def said(*texts: str) -> list[Statement]:
    return [Statement(f"2026-03-{2 + n:02d}", "user", text) for n, text in enumerate(texts)]


def is_right(row: dict, got: set[int]) -> bool:
    groups = row.get("one_of", [])
    either = set(row["either"]) | {i for group in groups for i in group}
    return got - either == set(row["valid"]) - either and all(got & set(group) for group in groups)


@pytest.mark.parametrize(
    ("name", "least", "least_whole"),
    [
        ("corpus", 0.95, 0.65), ("own_chains", 0.95, 0.65), ("unseen_chains", 0.95, 0.65), ("more_chains", 0.95, 0.65),
        ("domain_chains", 0.9, 0.65), ("field_chains", 0.9, 0.65), ("sealed_chains", 0.85, 0.65),
        ("sealed_voice_chains", 0.85, 0.65),
    ],
)  # fmt: skip
def test_chains_end_as_labelled(name: str, least: float, least_whole: float) -> None:
    """The rules were mended, and the trees trained, with all but the sealed chains in view."""
    rows = read_cases("chains") if name == "corpus" else read_own_chains(name)
    right = whole = 0
    for row in rows:
        chain = [Statement(s["at"], s["by"], s["text"]) for s in row["statements"]]
        right += is_right(row, set(valid_statements(chain, row["asked_at"])))
        whole += is_right(row, _valid_of_kept(chain, row["asked_at"]))
    print(f"{name}: {right} of {len(rows)} chains exactly right, with observing {whole}")
    assert right / len(rows) >= least
    assert whole / len(rows) >= least_whole


def _valid_of_kept(chain: list[Statement], asked_at: str) -> set[int]:
    """The rules pick first; what they miss is lost."""
    kept = [n for n, one in enumerate(chain) if one.by == "user" and _is_kept(one.text)]
    return {kept[n] for n in valid_statements([chain[n] for n in kept], asked_at)}


def _is_kept(text: str) -> bool:
    return any(one.outcome == "kept" for one in observe_prompt(text))


def test_another_subject_supersedes_nothing() -> None:
    chain = ("never commit secrets to the api folder", "never commit generated files to the api folder")
    assert valid_statements(said(*chain), "2026-03-20") == [0, 1]
    assert valid_statements(said(*reversed(chain)), "2026-03-20") == [0, 1]


def test_a_named_end_is_an_end() -> None:
    chain = said("until march 20 all deploys need Tom's ok")
    assert valid_statements(chain, "2026-03-20") == [0]
    assert valid_statements(chain, "2026-03-21") == []


def test_news_bring_the_end_that_was_waited_for() -> None:
    chain = said("no refactoring till the 3.2 release", "3.2 went out this morning")
    assert 0 not in valid_statements(chain, "2026-03-20")


def test_sharing_a_word_seldom_replaces_anything() -> None:
    """Statements of different chains, as memories of one project lie beside each other; the trees have seen none of these."""
    said_in = [
        (n, parse_statement(one["text"]))
        for n, chain in enumerate(read_own_chains("sealed_chains"))
        for one in chain["statements"]
        if one["by"] == "user"
    ]
    judged = [
        replacement_strength(new, old)
        for here, new in said_in
        for there, old in said_in
        if here != there and not new.words.isdisjoint(old.words) and not any_rule(new, old)
    ]
    wrong = sum(strength > 0 for strength in judged)
    print(f"{wrong} of {len(judged)} pairs of different chains that share a word, no rule firing, would be replaced")
    assert wrong / len(judged) <= 0.08


def test_what_contradicts_has_a_subject_in_common() -> None:
    """Memories without one are left out before any pair is judged."""
    parsed = [parse_statement(one["text"]) for chain in read_cases("chains") for one in chain["statements"]]
    against = [(new, old) for new in parsed for old in parsed if may_contradict(new, old)]
    assert against
    assert all(have_common_ground(new, old) for new, old in against)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("parquet files are cut at 256 MB", "avro files are cut at 64 MB"),
        ("Ravi owns the billing pipeline", "Noor owns the events pipeline"),
    ],
)
def test_two_kinds_of_a_thing_are_two_subjects(older: str, newer: str) -> None:
    assert valid_statements(said(older, newer), "2026-03-20") == [0, 1]
    assert valid_statements(said(older, older.replace("256", "64").replace("Ravi", "Noor")), "2026-03-20") == [1]


def test_what_is_deleted_is_not_kept() -> None:
    chain = said("recordings are kept for a month", "we delete recordings right after the talk")
    assert valid_statements(chain, "2026-03-20") == [1]


def test_the_agent_supersedes_nobody() -> None:
    chain = [*said("we use uv here"), Statement("2026-03-09", "agent", "I switched the project from uv to poetry.")]
    assert valid_statements(chain, "2026-03-20") == [0]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(st.text(max_size=30), st.sampled_from(["user", "agent", "x"]), st.text(max_size=120)), max_size=6
    )
)
def test_any_statements_are_taken(rows: list[tuple[str, str, str]]) -> None:
    got = valid_statements([Statement(*row) for row in rows], "2026-04-01")
    assert set(got) <= set(range(len(rows)))
