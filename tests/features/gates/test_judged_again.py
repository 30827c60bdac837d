"""A check that is judged again, because its exit status came later, is one run."""

from holdfast.core.kinds.check_events import CheckFinished
from holdfast.features.gates.evidence import Facts, with_check
from tests.factories import an_event


def told(doc: Facts, of: int, verdict: str, passed: int) -> Facts:
    data = {"of": of, "kind": "test", "runner": "pytest", "verdict": verdict, "passed": passed, "reach": ["."],
            "selection": "all", "command": "pytest -q"}  # fmt: skip
    event = an_event(kind=CheckFinished.KIND, data=data)
    return with_check(doc, event, event.data)


def test_tests_of_a_run_that_is_judged_again_count_once() -> None:
    doc = told(told(Facts(), 1, "unknown", 12), 1, "passed", 12)
    runs = told(doc, 2, "passed", 12).ran.values()
    assert {(run.tests, run.tests_before, run.passed) for run in runs} == {(12, 0, True)}


def test_summaries_of_several_packages_are_one_suite() -> None:
    runs = told(told(Facts(), 1, "passed", 12), 1, "passed", 5).ran.values()
    assert {run.tests for run in runs} == {17}
