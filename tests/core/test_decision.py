"""How the answers of several features become one."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.decision import NOTHING, RANK, Context, Decision, context_decision, deny_decision, merge_decisions

TEXTS = st.lists(st.text(max_size=5), max_size=3).map(tuple)
DECISIONS = st.builds(
    Decision,
    verdict=st.sampled_from(sorted(RANK)),
    reasons=TEXTS,
    notices=TEXTS,
    contexts=st.lists(st.builds(Context, source=st.text(max_size=3), text=st.text(max_size=5))).map(tuple),
    details=st.lists(st.dictionaries(st.text(max_size=2), st.integers(), max_size=1), max_size=2).map(tuple),
)
MANY = st.lists(st.none() | DECISIONS, max_size=6)


@given(MANY, MANY, MANY)
def test_the_order_of_merging_does_not_matter(a, b, c):
    at_once = merge_decisions([*a, *b, *c])
    assert merge_decisions([merge_decisions([*a, *b]), merge_decisions(c)]) == at_once
    assert merge_decisions([merge_decisions(a), merge_decisions([*b, *c])]) == at_once


@given(MANY)
def test_the_strictest_verdict_wins_whoever_comes_first(given_decisions):
    verdicts = [d.verdict for d in given_decisions if d] or ["none"]
    for order in (given_decisions, given_decisions[::-1]):
        assert merge_decisions(order).verdict == max(verdicts, key=RANK.__getitem__)


@given(MANY, TEXTS)
def test_a_denial_cannot_be_outvoted_and_keeps_its_reasons(others, reasons):
    merged = merge_decisions([*others, deny_decision(*reasons)])
    assert merged.verdict == "deny"
    assert set(reasons) <= set(merged.reasons)


@given(MANY)
def test_only_the_winners_give_reasons_and_each_once(given_decisions):
    merged = merge_decisions(given_decisions)
    winners = [d for d in given_decisions if d and d.verdict == merged.verdict]
    assert set(merged.reasons) == {r for d in winners for r in d.reasons}
    assert len(set(merged.reasons)) == len(merged.reasons)
    assert len(set(merged.notices)) == len(merged.notices)


@given(MANY)
def test_no_context_and_no_detail_is_lost(given_decisions):
    merged = merge_decisions(given_decisions)
    assert list(merged.contexts) == [c for d in given_decisions if d for c in d.contexts]
    assert list(merged.details) == [x for d in given_decisions if d for x in d.details]


@given(DECISIONS)
def test_nothing_adds_nothing(decision):
    assert merge_decisions([decision, None, NOTHING]) == merge_decisions([decision])


def test_silence():
    assert merge_decisions([]) is NOTHING
    assert NOTHING.silent
    assert Decision(verdict="allow").silent
    assert not deny_decision("no").silent
    assert not context_decision("memory", "text").silent
    assert not Decision(notices=("n",)).silent
