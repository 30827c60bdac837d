"""What people said: how much is kept of labelled prompts, and of every prompt in real sessions, and what judging costs."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from holdfast.features.memory.policy.recall import explain_line
from holdfast.features.memory.requests import corrections_in, explicit_requests, limits_in
from tests.bench import real_sessions
from tests.bench.figures import fact, figure, heading, p99

VARIABLE = "HOLDFAST_PROMPTS"


def main() -> None:
    heading("said: labelled prompts that developers typed")
    folder = Path(os.environ.get(VARIABLE) or "/nowhere")
    if (folder / "prompts.jsonl").is_file():
        _score(folder)
    else:
        fact("skipped: no labelled prompts", f"set {VARIABLE} to a folder of prompts.jsonl, labels.jsonl, score.py")
    heading("said: every prompt of real sessions")
    if real_sessions.needs_data():
        _kept_of_all()


def _score(folder: Path) -> None:
    rows = [json.loads(line) for line in (folder / "prompts.jsonl").read_text("utf-8").splitlines()]
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        for row in rows:
            file.write(
                json.dumps(explain_line(json.dumps({"prompt": row["prompt"], "context": row["context"]}))) + "\n"
            )
        file.flush()
        names = [str(folder / name) for name in ("score.py", "prompts.jsonl", "labels.jsonl")]
        scored = subprocess.run([sys.executable, *names, file.name], capture_output=True, text=True, check=True)
    print("  " + scored.stdout.strip().replace("\n", "\n  "))


def _kept_of_all() -> None:
    prompts = [
        event.data.prompt
        for sessions in real_sessions.repositories().values()
        for session in sessions
        for event in session.events
        if event.kind == "prompt.submitted" and not event.data.synthetic and not event.data.lane
    ]
    took, kept = [], []
    for prompt in prompts:
        began = time.perf_counter_ns()
        kept += explicit_requests(prompt)
        corrections_in(prompt)
        limits_in(prompt)
        took.append(time.perf_counter_ns() - began)
    fact("prompts; kept as asked to be remembered", f"{len(prompts)}; {len(kept)}")
    for one in kept:
        fact(one.type, one.text[:90])
    figure("judging a prompt, p99", p99(took) / 1e6, 2, unit="ms")
