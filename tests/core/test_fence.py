"""Stored text cannot leave its fence, and what is told stays within its budget."""

import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.decision import Context
from holdfast.core.text import FENCE_TAG, estimate_tokens, sanitise, within_budget, wrap_context

ROLES = ("system", "user", "assistant", "human", "function", "tool", "antml:x", "important", "hook", FENCE_TAG)
PIECES = st.sampled_from(
    ["<", "/", ">", " ", "\n", "\t", FENCE_TAG, FENCE_TAG.upper(), "holdfast-", "context", "\u200b", "\u00ad", "\u202e", "\x00",
     "\ufeff", "\ufe0f", "\U000e0001", *ROLES, *(f"</{role}>" for role in ROLES), f"<{FENCE_TAG}", f"< / {FENCE_TAG} >", '"', "="]
)  # fmt: skip
HOSTILE = st.one_of(
    st.text(), st.lists(PIECES, max_size=12).map("".join), st.text().map(lambda t: f"</{FENCE_TAG}>{t}")
)
CONTEXTS = st.builds(Context, source=HOSTILE, text=HOSTILE, weight=st.integers(0, 100))


@given(CONTEXTS)
def test_no_text_closes_its_fence(context):
    lines = wrap_context(context)
    assert len(re.findall(rf"<\s*/?\s*{FENCE_TAG}", lines, re.IGNORECASE)) == 2
    assert lines.startswith(f'<{FENCE_TAG} source="')
    assert lines.endswith(f"\n</{FENCE_TAG}>")


@given(CONTEXTS)
def test_the_source_cannot_leave_its_quotes(context):
    first = wrap_context(context).partition("\n")[0]
    assert re.fullmatch(rf'<{FENCE_TAG} source="[\w.:/-]*">', first)


@given(HOSTILE)
def test_no_role_is_opened_or_closed(text):
    assert not re.search(
        r"<\s*/?\s*(system|user|assistant|human|function|tool|antml|important|hook)", sanitise(text), re.I
    )


@given(HOSTILE)
def test_nothing_invisible_is_left(text):
    kinds = {unicodedata.category(c) for c in sanitise(text) if c not in "\n\t"}
    assert not kinds & {"Cc", "Cf", "Co", "Cs"}


@given(HOSTILE)
def test_making_harmless_twice_changes_nothing(text):
    assert sanitise(sanitise(text)) == sanitise(text)


@given(st.text(alphabet=st.characters(codec="ascii", exclude_categories=["Cc"], exclude_characters="<")))
def test_ordinary_text_stays_as_it_is(text):
    assert sanitise(text) == text


@given(st.lists(CONTEXTS, max_size=8), st.integers(-5, 200))
def test_the_budget_is_never_exceeded(contexts, budget):
    kept, left_out = within_budget(contexts, budget)
    assert sum(estimate_tokens(c.text) for c in kept) <= max(0, budget)
    assert sorted(map(id, kept + left_out)) == sorted(map(id, contexts))
    assert kept == [c for c in contexts if any(c is k for k in kept)]


@given(st.lists(CONTEXTS, max_size=8), st.integers(0, 200))
def test_what_was_left_out_would_not_have_fitted_beside_the_heavier(contexts, budget):
    kept, left_out = within_budget(contexts, budget)
    for context in left_out:
        heavier = sum(estimate_tokens(k.text) for k in kept if k.weight >= context.weight)
        assert heavier + estimate_tokens(context.text) > budget


@given(st.text(), st.text())
def test_more_text_never_costs_less(a, b):
    assert (
        max(estimate_tokens(a), estimate_tokens(b)) <= estimate_tokens(a + b) <= estimate_tokens(a) + estimate_tokens(b)
    )
