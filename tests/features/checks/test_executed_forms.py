"""Commands that were really run: no verdict may contradict what happened, and what shows must be seen.

`tests/corpus/executed_forms.jsonl` holds what each form did in a project whose tests pass and in one whose tests fail;
`python -m tests.features.checks.record_forms` records it anew.
"""

from pathlib import Path

import msgspec
import pytest

from holdfast.core.checks import CheckKind, Verdict
from holdfast.features.checks.judge import Judgement, judge_command
from tests.features.checks.record_forms import RECORDED, Recorded

FORMS = [msgspec.json.decode(line, type=Recorded) for line in Path(RECORDED).read_bytes().splitlines()]


def _judge(form: Recorded) -> tuple[Judgement, set[Verdict]]:
    judgement = judge_command(form.command, ".", form.exit_code, form.stdout, form.stderr)
    verdicts = {check.verdict for check in judgement.checks if check.kind is CheckKind.TEST}
    return judgement, verdicts & {Verdict.PASSED, Verdict.FAILED}


def _named(label: str) -> list[object]:
    return [pytest.param(f, id=f"{f.project}: {f.command}"[:100]) for f in FORMS if f.label == label]


@pytest.mark.parametrize("form", _named("proof"))
def test_what_shows_is_seen(form: Recorded) -> None:
    judgement, verdicts = _judge(form)
    assert form.outcomes, "the form itself is wrong: no test ran"
    good = form.project == "pass"
    assert verdicts == {Verdict.PASSED if good else Verdict.FAILED}, judgement
    assert judgement.proves_tests_pass is good, judgement


@pytest.mark.parametrize("form", _named("hidden"))
def test_what_does_not_show_is_not_claimed(form: Recorded) -> None:
    judgement, verdicts = _judge(form)
    assert not judgement.proves_tests_pass, judgement
    assert verdicts <= ({Verdict.FAILED} if form.project == "fail" else set()), judgement


@pytest.mark.parametrize("form", _named("nothing"))
def test_what_did_not_run_proves_nothing(form: Recorded) -> None:
    judgement, verdicts = _judge(form)
    assert not form.outcomes, "the form itself is wrong: tests ran"
    assert not judgement.proves_tests_pass, judgement
    assert not verdicts, judgement
