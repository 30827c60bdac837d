"""What an agent is told about UAT: what is recorded, which steps, what is to be made sure first, when a picture is due."""

from tests.features.uat.kit import CLICK, FILL, LOGIN, NAVIGATE, SHOT, URL, Lab
from tests.features.uat.policy.test_derive import begin

MANY = "name: login-flow\nsteps:\n" + "".join(f"  - {{action: click, description: Do {n}}}\n" for n in range(1, 15))
PROMPT = "Please test the login flow scenario"


def context(outcome) -> str:
    return "\n".join(one.text for one in outcome.decision.contexts)


def test_the_beginning_names_the_run_its_steps_and_what_comes_first(lab: Lab) -> None:
    lab.scenario(LOGIN + "preconditions: [{description: The shop is empty}]\naccessibility: {max_violations: 0}\n")
    suggested = context(lab.hook("UserPromptSubmit", prompt=PROMPT))
    assert "This looks like a UAT run of the scenario “login-flow”" in suggested
    assert (
        "First make sure: The shop is empty. Steps: 1. Navigate to login page; 2. Fill login credentials;" in suggested
    )
    assert suggested.endswith("Also run axe-core in the page and return its violations.")
    told = context(lab.before(NAVIGATE, "n", url=URL))
    assert f"UAT run {lab.run['id']} of “login-flow” is being recorded." in told
    assert "Take a screenshot whenever one fails." in told


def test_without_preconditions_or_axe_nothing_is_said_of_them(lab: Lab) -> None:
    lab.scenario()
    suggested = context(lab.hook("UserPromptSubmit", prompt=PROMPT))
    assert "First make sure" not in suggested and "axe" not in suggested and "more)" not in suggested


def test_of_many_steps_the_first_twelve_are_named(lab: Lab) -> None:
    lab.scenario(MANY)
    suggested = context(lab.hook("UserPromptSubmit", prompt=PROMPT))
    assert "12. Do 12 (and 2 more)." in suggested and "Do 13" not in suggested


def test_a_resumed_session_is_told_what_is_left(lab: Lab) -> None:
    lab.scenario(LOGIN + "preconditions: [{description: The shop is empty}]\n")
    lab.hook("UserPromptSubmit", prompt=PROMPT)
    lab.tool(NAVIGATE, url=URL)
    lab.tool(FILL, selector="#email")
    told = context(lab.hook("SessionStart", source="resume", mode="start"))
    assert "2 of 5 steps done" in told and "Steps: 2. Fill login credentials; 3." in told
    assert "1. Navigate" not in told and "First make sure" not in told
    assert told.endswith("It ends with its last step, or: holdfast uat end.")


def test_a_failure_asks_for_a_picture_once(lab: Lab) -> None:
    begin(lab)
    lab.failed(FILL, "Timeout 30000ms exceeded", selector="#gone")
    asked = context(lab.before(CLICK, "c", selector="#x"))
    assert f"Step 2 of UAT run {lab.run['id']} failed. Take a screenshot now" in asked
    assert context(lab.before(CLICK, "d", selector="#x")) == ""


def test_no_picture_is_asked_for_where_one_is_taken_or_nothing_failed(lab: Lab) -> None:
    begin(lab)
    assert context(lab.before(CLICK, "c", selector="#x")) == ""
    lab.failed(FILL, "Timeout 30000ms exceeded", selector="#gone")
    assert context(lab.before(SHOT, "s")) == ""
