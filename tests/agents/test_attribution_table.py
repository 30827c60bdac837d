"""The table of whose words a folder of transcripts holds."""

import json
from pathlib import Path

import pytest
from tools import attribution


def transcript(path: Path, *texts: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({
        "type": "user", "uuid": f"u{n}", "sessionId": path.stem, "cwd": "/home/dev/project", "promptId": f"p{n}",
        "timestamp": f"2026-03-01T10:00:{n:02}Z", "message": {"role": "user", "content": text},
    }) + "\n" for n, text in enumerate(texts)))  # fmt: skip


def test_prompts_by_attribution(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    notice = "<task-notification><summary>Built</summary></task-notification>"
    transcript(tmp_path / "repo" / "claude-code" / "s1.jsonl", "Fix it", notice, "<bash-input>ls</bash-input>", "# Odd")
    (tmp_path / "repo" / "claude-code" / "s2.jsonl").write_text("no record\n")
    (tmp_path / "repo" / "unknown").mkdir()
    (tmp_path / "repo" / "unknown" / "s3.jsonl").write_text("{}\n")
    table = attribution.main(tmp_path)
    counts = table.counts["claude-code"]
    assert {name: counts[name] for name in ("files", "sessions", "prompts", "machine", "shell", "marked")} == {
        "files": 2, "sessions": 1, "prompts": 2, "machine": 1, "shell": 1, "marked": 1,
    }  # fmt: skip
    attribution.show(table)
    printed = capsys.readouterr().out
    assert "no session: " in printed
    assert "s2.jsonl" in printed
    assert "prompt of claude-code" in printed
    assert "of no known agent: 1 file" in printed
