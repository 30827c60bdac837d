"""Many transcripts with forks, subagents and streamed messages: what the model said is what is counted."""

import os

from holdfast.analysis.usage.prices import load_table
from holdfast.analysis.usage.report import GROUPS, sum_all_records, sum_by_group
from tests.analysis.usage.generate import Generator
from tests.analysis.usage.kit import scan_usage, total_of


def test_generated_transcripts_are_counted_exactly(tmp_path):
    made = Generator(tmp_path)
    made.write(sessions=12, messages=25)
    records = list(scan_usage(tmp_path, ["claude-code"]))
    by_model = {one.group: one.usage for one in sum_by_group(records, GROUPS["model"], load_table())}
    assert by_model == made.said
    assert sum_all_records(records, load_table()).usage == total_of(list(made.said.values()))


def test_a_fork_pays_only_for_its_own(tmp_path):
    made = Generator(tmp_path)
    made.write(sessions=1, messages=5)
    for path in made.folder.glob("5e55*.jsonl"):
        os.utime(path, (1, 1))
    calls = {
        one.group[:4]: one.calls
        for one in sum_by_group(scan_usage(tmp_path, ["claude-code"]), GROUPS["session"], load_table())
    }
    assert set(calls) == {"5e55", "f08c"}
    forked = [r for r in scan_usage(tmp_path, ["claude-code"]) if r.session.startswith("f08c")]
    assert {record.id.split(":")[0] for record in forked} == {"msg_0.fork.0", "msg_0.fork.1"}
