"""What drivers answer: what stands in a page's fields is not kept, and a success that tells of a failure is none."""

from typing import Any

import pytest

from holdfast.features.uat.drivers.answers import without_fields, without_typed_code
from holdfast.features.uat.report import render_report
from tests.features.uat.kit import CLICK, FILL, LOGIN, NAVIGATE, SNAPSHOT, URL, Lab

# As Playwright MCP 0.0.83 and chrome-devtools-mcp 1.11.0 write them; what was typed has ZQ in it, or is 4242.
PLAYWRIGHT = """\
- generic [ref=e2]:
  - text: Email
  - textbox "Email" [ref=e3]:
    - /placeholder: you@example.org
    - text: emailZQ
- textbox "Pass" [active] [ref=e5]:
  - /placeholder: secret
  - text: "pass: ZQ"
- combobox "City" [ref=e9]: cityZQ
- combobox "Shipping" [ref=e10]:
  - option "Post" [selected]
- searchbox "Find" [ref=e10]: findZQ
- spinbutton "Age" [active] [ref=e11]: "4242"
- textbox "Rich" [ref=e12]:
  - paragraph [ref=e13]: richZQ
- paragraph: Total 12 EUR"""
DEVTOOLS = """\
uid=1_0 RootWebArea "Form" url="http://127.0.0.1:8777/"
  uid=1_2 textbox "Email" value="email "ZQ""
  uid=1_6 textbox "Note" multiline value="noteZQ
second ZQ"
  uid=1_7 textbox "Rich" multiline value="richZQ"
    uid=1_8 "richZQ"
  uid=1_9 combobox "City" autocomplete="list" value="cityZQ"
  uid=1_11 spinbutton "Age" value="4242" valuemax="0" valuetext="4242"
  uid=1_12 "Total 12 EUR\""""


@pytest.mark.parametrize("page", [PLAYWRIGHT, DEVTOOLS])
def test_a_snapshot_is_kept_without_what_stands_in_its_fields(page: str) -> None:
    shown = without_fields(page)
    assert "ZQ" not in shown
    assert "4242" not in shown
    assert "Total 12 EUR" in shown
    assert shown.count('"Email"') == shown.count('"Rich"') == shown.count('"City"') == 1


def test_a_placeholder_and_a_choice_are_kept() -> None:
    shown = without_fields(PLAYWRIGHT)
    assert "/placeholder: you@example.org" in shown
    assert 'option "Post" [selected]' in shown


@pytest.mark.parametrize(
    "script",
    [
        "() => { document.querySelector('#p').value = 'typedZQ' }",
        'el.value="typedZQ"; el.dispatchEvent(new Event("input"))',
        "nativeInputValueSetter.call(input, 'typedZQ')",
        "desc.set.call(el, `typedZQ`)",
    ],
)
def test_a_script_that_fills_a_field_is_kept_without_the_value(script: str) -> None:
    assert "ZQ" not in without_typed_code(script)


def test_a_script_that_compares_a_value_is_kept_whole() -> None:
    assert without_typed_code("() => el.value == 'ready'") == "() => el.value == 'ready'"


def begin(lab: Lab) -> None:
    lab.scenario()
    lab.hook("UserPromptSubmit", prompt="Please test the login flow scenario")


@pytest.mark.parametrize("page", [PLAYWRIGHT, DEVTOOLS])
def test_what_an_assertion_received_does_not_repeat_the_form(lab: Lab, page: str) -> None:
    """The page that came instead of the expected one is often the form that was just filled in."""
    begin(lab)
    lab.tool(NAVIGATE, url=URL)
    lab.tool(FILL, selector="#p", value="passZQ")
    lab.tool(CLICK)
    lab.tool(SNAPSHOT, page)
    lab.hook("SessionEnd", reason="other")
    assert lab.run["assertions"][0]["result"] == "failed"
    assert "Total 12 EUR" in lab.run["assertions"][0]["actual"]
    assert "ZQ" not in repr([event.data for event in lab.app.store.reader().replay()])
    assert "ZQ" not in render_report(lab.record, "html").decode()


@pytest.mark.parametrize(
    ("response", "error"),
    [
        ("### Result\nClicked.\n\n### Error\nTimeoutError: locator.click", "TimeoutError: locator.click"),
        ({"isError": True, "content": [{"type": "text", "text": "the button is gone"}]}, "the button is gone"),
        ("### Page\n- Page URL: chrome-error://chromewebdata/\n- Page Title: ", "the browser shows its own error page"),
    ],
)
def test_a_success_that_tells_of_a_failure_is_none(lab: Lab, response: Any, error: str) -> None:
    begin(lab)
    lab.tool(NAVIGATE, url=URL)
    lab.tool(FILL)
    lab.before(CLICK, "liar")
    told = response if isinstance(response, dict) else [{"type": "text", "text": response}]
    lab.hook("PostToolUse", tool_name=CLICK, tool_input={}, tool_use_id="liar", tool_response=told)
    step = lab.view("show")["plan"][2]
    assert step["verdict"] == "failed"
    assert error in step["attempts"][-1]["error"]


def test_a_page_that_speaks_of_errors_is_no_failure(lab: Lab) -> None:
    lab.scenario(LOGIN.replace("contains: Welcome", "contains: Error budget"))
    lab.hook("UserPromptSubmit", prompt="Please test the login flow scenario")
    lab.tool(NAVIGATE, '### Snapshot\n```yaml\n- heading "### Error"\n- text: isError\n```', url=URL)
    assert lab.view("show")["plan"][0]["verdict"] == "passed"
