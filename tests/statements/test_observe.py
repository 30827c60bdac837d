"""What of a prompt is remembered: figures on labelled prompts, and bounds on any input."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.statements.observe import MOST_OBSERVED, observe_prompt
from tests.features.memory.corpus import read_cases, read_own_statements, statement_figures


def figures(rows: list[dict], outcomes: tuple[str, ...]) -> dict[str, float]:
    found = {
        row["id"]: [
            {"type": one.type, "text": one.text}
            for one in observe_prompt(row["prompt"], row.get("context") or "")
            if one.outcome in outcomes
        ]
        for row in rows
    }
    return statement_figures(rows, found)


@pytest.mark.parametrize("name", ["unseen_statements", "sealed_statements", "corpus"])
def test_precision_recall_and_clean_prompts(name: str) -> None:
    """The weights were not trained on the first two; on the corpus they were, so that it only guards the code."""
    rows = read_cases("statements") if name == "corpus" else read_own_statements(name)
    kept, both = figures(rows, ("kept",)), figures(rows, ("kept", "candidate"))
    print(f"{name}: kept {kept}, with candidates {both}")
    assert kept["precision"] >= 0.92
    assert kept["recall"] >= 0.75
    assert kept["clean"] >= 0.95
    assert both["recall"] >= 0.9


def test_prompts_in_other_voices() -> None:
    """Half of them traps; labelled before the first run, its sections on logs, reviews and long prompts looked at afterwards."""
    rows = read_own_statements("sealed_voice_statements")
    kept, both = figures(rows, ("kept",)), figures(rows, ("kept", "candidate"))
    print(f"sealed_voice_statements: kept {kept}, with candidates {both}")
    assert kept["precision"] >= 0.85
    assert kept["recall"] >= 0.7
    assert kept["clean"] >= 0.88
    assert both["recall"] >= 0.85


def test_of_a_long_task_what_it_describes_is_not_kept() -> None:
    prompt = (
        "The importer should read line by line. Skip comments. It has to cope with files of several gigabytes, so no reading "
        "at once. Put it beside the others. At the end it prints a summary. "
    )
    lasting = "All importers in this repo live under feeds/ and must never write to the database themselves."
    assert [one.text for one in observe_prompt(prompt + lasting) if one.outcome == "kept"] == [lasting]


@pytest.mark.parametrize(
    "line",
    [
        "Nov 12 03:14:07 app-2 systemd[1]: worker.service must never be restarted by hand",
        "E       AssertionError: never call the clock directly",
        "web_1  | always use the pool for connections",
        "error TS2322: all properties must be strings",
        "[warn] never use this option in production",
    ],
)
def test_what_a_program_printed_is_nobodys_rule(line: str) -> None:
    assert observe_prompt(line) == []


@pytest.mark.parametrize(
    "prompt",
    [
        "the login endpoint always returns 500",
        "I want to add pagination",
        "stop, wrong file",
        "the tests in ci must be green before I go home, it's 17:10",
        "branches get deleted after the merge I think",
        "should we always validate on the server?",
        'the customer writes: "never call us again". answer politely',
        "```\n# never call this twice\n```\nwhat does it do",
        "",
        "???",
    ],
)
def test_what_does_not_outlast_the_task_is_not_kept(prompt: str) -> None:
    assert [one for one in observe_prompt(prompt) if one.outcome == "kept"] == []


@pytest.mark.parametrize("removed", ["The staging password is [redacted:password].", "The key is [redacted:aws-key]"])
def test_of_a_secret_nothing_is_remembered(removed: str) -> None:
    assert observe_prompt(removed) == []
    assert observe_prompt("Always read the API key from the vault, never from .env.")


def test_only_the_lasting_part_is_quoted() -> None:
    [found] = observe_prompt("fix the typo in the header. commits must be signed or the push gets refused")
    assert (found.text, found.outcome) == ("commits must be signed or the push gets refused", "kept")


def test_an_answer_to_a_question_is_read_with_it() -> None:
    asked = "Should the tool read YAML or TOML for its configuration?"
    assert observe_prompt("toml") == []
    assert [one.type for one in observe_prompt("toml", asked)] == ["decision"]


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=400), st.text(max_size=100))
def test_any_text_is_read(prompt: str, context: str) -> None:
    assert len(observe_prompt(prompt, context)) <= MOST_OBSERVED


@pytest.mark.parametrize(
    "piece", ["never commit secrets. ", "a", "- [ ] x\n", "“", '"', "<a>", "測試必须。", ", and ", "\ue0000\ue001"]
)
def test_a_megabyte_is_bounded(piece: str) -> None:
    prompt = piece * (1_000_000 // len(piece))
    assert len(observe_prompt(prompt, prompt)) <= MOST_OBSERVED
