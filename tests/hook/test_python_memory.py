"""The Python client hands on a payload of any length in the same little memory."""

import json
import os
import subprocess
import sys
from pathlib import Path

from holdfast.daemon.ingest.frames import HEAD, split_spool_records
from tests.kit import PYTHON_HOOK

MEASURED = """
import resource, subprocess, sys
code = subprocess.run([sys.executable, "-I", "-S", *sys.argv[1:]], stdin=0).returncode
print()
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
UNIT = 1 if sys.platform == "darwin" else 1024


def run_hook(state: Path, payload: Path, *words: str) -> tuple[int, int, bytes]:
    with payload.open("rb") as stdin:
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, PYTHON_HOOK, "--state", state, *words],
            stdin=stdin, capture_output=True, check=True, env={"PATH": os.environ["PATH"], "HOME": str(state.parent)},
        )  # fmt: skip
    answer, last = done.stdout.removesuffix(b"\n").rsplit(b"\n", 1)
    code, peak = map(int, last.split())
    return code, peak * UNIT, answer


def a_state(tmp_path: Path) -> Path:
    state = tmp_path / "state"
    (state / "run").mkdir(parents=True, mode=0o700)
    (state / "run" / "failed").touch()  # No daemon is started.
    return state


def a_payload(tmp_path: Path, megabytes: int) -> Path:
    path = tmp_path / "payload.json"
    with path.open("wb") as file:
        file.write(b'{"tool_response": "')
        for number in range(megabytes):
            file.write(f"{number:08d}".encode() * (1 << 17))
        file.write(b'", "tool_name": "Bash"}')
    return path


def test_a_long_payload_is_spooled_whole_in_little_memory(tmp_path: Path) -> None:
    state, payload = a_state(tmp_path), a_payload(tmp_path, 64)
    code, peak, _ = run_hook(state, payload, "tell", "claude-code", "PostToolUse")
    assert code == 0
    assert peak < 32 << 20
    (log,) = (state / "spool").iterdir()
    assert log.stat().st_mode & 0o777 == 0o600
    (frame,), torn = split_spool_records(log.read_bytes())
    assert torn == []
    assert frame[HEAD.size + HEAD.unpack_from(frame)[1] :] == payload.read_bytes()


def test_the_answer_for_an_absent_daemon_is_found_at_the_end_of_a_long_payload(tmp_path: Path) -> None:
    state, payload = a_state(tmp_path), a_payload(tmp_path, 8)
    refusal = json.dumps({"decision": "block"}).encode()
    for names, expected in ((b'"Bash"', refusal), (b'"Read"', b"")):
        fields = [b"claude-code", b"PreToolUse", b"", b"0", b"only", b'"tool_name"', names, refusal]
        (state / "when-unsure").write_bytes(b"\0".join(fields) + b"\0")
        _, _, answer = run_hook(state, payload, "ask", "claude-code", "PreToolUse")
        assert answer == expected
