"""The hook of an agent without an adapter: `holdfast-outside NAME MODE EVENT`, with its payload on stdin.

`holdfast-agent-NAME read EVENT` converts the payload to the plain form of docs/agents.md, and `holdfast-agent-NAME write
EVENT` converts our plain answer for the agent. If they fail, the agent continues and its payload is stored unchanged.
All of it runs in the agent's own hook, so a slow program delays nobody else.
"""

import os
import shutil
import subprocess
import sys

from holdfast.setup.install.hooks_text import client_command

PROGRAM = "holdfast-agent-"
# In seconds, for each of the two calls of the agent's own program.
PATIENCE_S = 2.0


def main() -> None:
    try:
        _relay_hook(*sys.argv[1:4])
    except Exception:  # noqa: S110 - a hook says nothing and never fails
        pass
    finally:
        sys.stdout.flush()
        # At once and with 0: nothing at interpreter exit may delay or fail the hook.
        os._exit(0)


def _relay_hook(name: str, mode: str, event: str) -> None:
    payload = sys.stdin.buffer.read()
    # A name with a slash or dot could lead to any program.
    program = shutil.which(f"{PROGRAM}{name}") if name.replace("-", "").isalnum() else None
    plain = _run_program([program, "read", event], payload) if program else b""
    reply = _run_program([*client_command(), mode, name, event], plain or payload, patience=10)
    if program and plain and reply:
        sys.stdout.buffer.write(_run_program([program, "write", event], reply))


def _run_program(command: list[str], stdin: bytes, patience: float = PATIENCE_S) -> bytes:
    try:
        done = subprocess.run(
            command, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=patience, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return b""
    return done.stdout if done.returncode == 0 else b""


if __name__ == "__main__":
    main()
