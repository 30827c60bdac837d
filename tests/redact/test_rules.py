"""Every rule finds its own example and leaves the ordinary one alone."""

import pytest

from holdfast.redact import Redactor
from holdfast.redact.redactor import Example, name_examples, place_examples, token_examples
from holdfast.redact.rules.constructs import CONSTRUCT_RULES
from holdfast.redact.rules.locations import LOCATION_RULES
from holdfast.redact.rules.names import NAME_RULES
from holdfast.redact.scanner import TOKEN_RULES

REDACTOR = Redactor()


def check(positive: Example, negative: Example) -> None:
    cleaned, findings = REDACTOR.redact_text(positive.text)
    assert positive.secret and positive.secret not in cleaned, cleaned
    assert findings
    assert REDACTOR.redact_text(negative.text) == (negative.text, [])


@pytest.mark.parametrize("rule", TOKEN_RULES, ids=lambda rule: f"{rule.kind}:{rule.shape}")
def test_a_token_by_its_form(rule) -> None:
    check(*token_examples(rule))


@pytest.mark.parametrize(
    "rule", (*LOCATION_RULES, *CONSTRUCT_RULES), ids=lambda rule: f"{rule.kind}:{rule.anchors[0]!a}"
)
def test_a_secret_by_its_place(rule) -> None:
    check(*place_examples(rule))


@pytest.mark.parametrize("rule", NAME_RULES, ids=lambda rule: f"{rule.kind}:{rule.stems[0]!a}")
def test_a_secret_by_its_name(rule) -> None:
    check(*name_examples(rule))


def test_there_are_many_kinds() -> None:
    kinds = {rule.kind for rule in (*TOKEN_RULES, *LOCATION_RULES, *CONSTRUCT_RULES, *NAME_RULES)}
    assert len(kinds) >= 220
