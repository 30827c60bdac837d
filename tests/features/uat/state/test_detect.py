"""S3-2, O3-b: a run begins by itself only when it was ordered."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.kinds.uat_events import Plan, PlannedStep
from holdfast.features.uat.drivers import recognise_tool_use
from holdfast.features.uat.settings import START_AT, SUGGEST_AT
from holdfast.features.uat.state.detect import assess_prompt, named_scenarios
from holdfast.features.uat.state.order_words import read_prompt
from holdfast.features.uat.state.step_match import Called
from tests.features.uat.prompts import ORDINARY, UAT

LOGIN = Plan(steps=[PlannedStep(action) for action in ("navigate", "fill", "click")], base_url="http://localhost")
SCENARIOS = {"login-flow": LOGIN, "checkout-flow": LOGIN, "signup": LOGIN}
_URL = {"url": "http://localhost/login"}
NAVIGATE = Called(
    "mcp__playwright__browser_navigate", "mcp", _URL, recognise_tool_use("mcp__playwright__browser_navigate", _URL)
)


def score(prompt: str) -> int:
    """With the tool that says most for it: the first step of the scenario."""
    return assess_prompt(prompt, SCENARIOS, NAVIGATE).score


def test_the_corpora_are_large_enough_and_say_each_thing_once() -> None:
    assert len(set(ORDINARY)) == len(ORDINARY) >= 100
    assert len(set(UAT)) == len(UAT) >= 40


@pytest.mark.parametrize("prompt", ORDINARY)
def test_ordinary_prompts_begin_no_run(prompt: str) -> None:
    assert score(prompt) < START_AT, assess_prompt(prompt, SCENARIOS, NAVIGATE)


@pytest.mark.parametrize("prompt", ORDINARY)
def test_ordinary_prompts_are_not_bothered_with_a_suggestion_before_a_tool_runs(prompt: str) -> None:
    assert assess_prompt(prompt, SCENARIOS).score < SUGGEST_AT


def test_most_uat_prompts_are_found() -> None:
    """36 of 40."""
    missed = [p for p in UAT if score(p) < START_AT]
    assert len(missed) <= len(UAT) // 10, missed


def test_the_seeds_prompt_scores_as_in_the_seed() -> None:
    """S3-10: detectionConfidence 95."""
    found = assess_prompt("Please test the login flow scenario", SCENARIOS, NAVIGATE)
    assert (found.score, found.scenario) == (95, "login-flow")
    assert len(found.reasons) == 4


def test_no_tool_no_start() -> None:
    assert all(assess_prompt(prompt, SCENARIOS).score < START_AT for prompt in UAT)


def test_another_tool_no_start() -> None:
    reading = Called("Read", "read", {"file_path": "/x"})
    assert all(assess_prompt(prompt, SCENARIOS, reading).score < START_AT for prompt in UAT)


def test_no_scenario_no_start() -> None:
    assert all(assess_prompt(prompt, {}, NAVIGATE).score < START_AT for prompt in UAT)


def test_a_prompt_may_name_several_scenarios() -> None:
    assert named_scenarios("test the login flow and then the checkout flow", SCENARIOS) == ["login-flow"]
    assert named_scenarios("test the login flow, then run the checkout flow", SCENARIOS) == [
        "login-flow",
        "checkout-flow",
    ]


def test_the_words_alone_never_exceed_their_share() -> None:
    assert all(read_prompt(prompt).score <= 50 for prompt in UAT)


@given(st.text(max_size=4000))
def test_any_text_is_read(text: str) -> None:
    found = assess_prompt(text, SCENARIOS, NAVIGATE)
    assert 0 <= found.score <= 100


@pytest.mark.parametrize("text", ["test " * 5000, "please " * 5000 + "test", "`" * 9000, "and " * 9000, "a.b" * 5000])
def test_long_prompts_are_read_quickly(text: str) -> None:
    import time

    began = time.process_time()
    read_prompt(text)
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(
    "prompt",
    [
        "Bitte teste den login-flow",
        "Kannst du den login-flow im Browser testen?",
        "Führe das Szenario login-flow aus",
        "Führ mal den Login-Flow-Test durch",
        "Lass das Szenario login-flow laufen",
        "Ich möchte, dass du den Login-Flow testest",
        "login-flowのテストをお願いします",
        "login-flowの動作確認をお願いします",
        "login-flowシナリオを走らせて",
        "¿Puedes probar el escenario login-flow?",
        "Quiero que pruebes el login-flow",
        "Lance le scénario login-flow",
        "Ejecuta el escenario login-flow, por favor",
        "Esegui lo scenario login-flow",
        "Запусти сценарий login-flow",
        "请测试login-flow场景",
        "login-flowをテストしてください",
    ],
)
def test_prompts_in_other_languages_begin_a_run_by_the_scenarios_name(prompt: str) -> None:
    plans = {"login-flow": Plan(steps=[PlannedStep("navigate")])}
    found = assess_prompt(prompt, plans, NAVIGATE)
    assert (found.scenario, found.score) == ("login-flow", 80)


@pytest.mark.parametrize(
    "prompt",
    [
        "Teste den login-flow nicht",
        "Wie kann man den login-flow testen?",
        "Schreibe einen Test für login-flow und starte ihn",
        "Pourquoi le login-flow est-il lent ?",
        "No ejecutes el escenario login-flow",
        "¿Cómo pruebo el login-flow?",
        "Starte den Server für login-flow",
        "login-flowのテスト方法を教えて",
        "Teste die Anwendung",
        "请不要测试login-flow",
    ],
)
def test_other_prompts_in_other_languages_begin_nothing(prompt: str) -> None:
    plans = {"login-flow": Plan(steps=[PlannedStep("navigate")])}
    assert assess_prompt(prompt, plans, NAVIGATE).score < 80
