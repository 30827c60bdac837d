"""Forms of twenty runners that were really run: the tests themselves wrote down whether they ran and how they ended.

`tests/corpus/runner_forms.jsonl` was recorded in projects whose tests pass and in ones where a test fails;
`tool_forms.jsonl` later, of other tools and shell forms, each labelled before it was run: P the verdict shows,
H it is hidden, N nothing is run.
"""

from functools import lru_cache
from pathlib import Path

import msgspec
import pytest

from holdfast.core.checks import CheckKind, Verdict
from holdfast.features.checks.judge import Judgement, judge_command


class RunnerForm(msgspec.Struct):
    runner: str
    kind: str
    command: str
    exit_code: int
    stdout: str
    stderr: str
    ran: str
    """One letter for each test that was executed: `p` passes, `F` fails."""
    label: str = ""

    @property
    def is_proof(self) -> bool:
        return "p" in self.ran and "F" not in self.ran


CORPUS = Path(__file__).parents[2] / "corpus"
FORMS = [
    msgspec.json.decode(line, type=RunnerForm)
    for name in ("runner_forms.jsonl", "tool_forms.jsonl")
    for line in (CORPUS / name).read_text().split("\n")
    if line
]
RUNNERS = sorted({form.runner for form in FORMS})


class WrittenForm(msgspec.Struct):
    """Of wrappers and runners that are not installed here: with the output that they print, labelled before the first run."""

    command: str
    exit_code: int
    stdout: str
    stderr: str
    proof: bool


WRITTEN = [
    msgspec.json.decode(line, type=WrittenForm)
    for line in (CORPUS / "written_forms.jsonl").read_text().split("\n")
    if line
]


def test_other_wrappers_and_runners_prove_what_they_show_and_no_more() -> None:
    judged = [(form, judge_command(form.command, ".", form.exit_code, form.stdout, form.stderr)) for form in WRITTEN]
    assert [form.command for form, found in judged if found.proves_tests_pass is not form.proof] == []


@lru_cache
def judged_forms() -> list[tuple[RunnerForm, Judgement]]:
    return [(f, judge_command(f.command, ".", f.exit_code, f.stdout, f.stderr)) for f in FORMS]


@pytest.mark.parametrize("runner", RUNNERS)
def test_no_form_is_a_false_proof(runner: str) -> None:
    forms = [(form, found) for form, found in judged_forms() if form.runner == runner]
    assert [form.command for form, found in forms if found.proves_tests_pass and not form.is_proof] == []


def test_what_was_not_executed_is_not_called_failed_or_passed() -> None:
    wrong = []
    for form, found in judged_forms():
        verdicts = {check.verdict for check in found.checks if check.kind is CheckKind.TEST}
        if not form.ran and verdicts & {Verdict.PASSED, Verdict.FAILED}:
            wrong.append(form.command)
    assert wrong == []


def test_most_honest_forms_are_accepted() -> None:
    """Some hide how they ended or rewrite what is shown; those are not to be accepted."""
    honest = [found for form, found in judged_forms() if form.kind == "pass" and form.is_proof and not form.label]
    accepted = sum(found.proves_tests_pass for found in honest)
    print(f"accepted {accepted} of {len(honest)} forms in which every test passed")
    assert accepted >= 0.75 * len(honest)


def test_labelled_forms_whose_verdict_shows_are_accepted() -> None:
    honest = [(form, found) for form, found in judged_forms() if form.label == "P" and form.is_proof]
    refused = [form.command for form, found in honest if not found.proves_tests_pass]
    print(f"accepted {len(honest) - len(refused)} of {len(honest)} labelled forms")
    assert len(refused) <= 0.06 * len(honest), refused
