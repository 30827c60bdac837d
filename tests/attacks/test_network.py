"""A default installation connects to nothing and listens on nothing that is reached from outside."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit import World, git

OUTSIDE = re.compile(r"sa_family=AF_INET6?.*?(?:inet_addr|inet_pton)\([^\")]*\"([^\"]+)\"")


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_no_process_of_ours_uses_the_network(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    strace = f"strace -f -qq -o {trace} -e trace=connect,bind,sendto"
    starter = tmp_path / "python"
    starter.write_text(f'#!/bin/sh\nexec {strace} "$HOLDFAST_TEST_PYTHON" "$@"\n')
    starter.chmod(0o700)
    world = World(tmp_path / "world")
    try:
        git(world.project, "init", "-q")
        env = {**world.env, "HOLDFAST_TEST_PYTHON": sys.executable}
        daemon = subprocess.Popen(
            [starter, "-P", "-m", "holdfast.daemon", "--state", world.paths.state], env=env, stdin=subprocess.DEVNULL
        )
        world.cli("daemon", "start")
        agent = world.session("s1")
        agent.start()
        agent.prompt("Fetch https://example.org and fix it")
        agent.tool("Bash", command="curl https://example.org")
        agent.stop("Done.")
        for words in (("status",), ("doctor",), ("history", "fix"), ("session", "show", "s1")):
            world.cli(*words, code=None)
        world.kill(15)
        daemon.wait(30)
    finally:
        world.close()
    asked = trace.read_text()
    assert "AF_UNIX" in asked, "the trace saw the daemon's sockets"
    assert {
        address for address in OUTSIDE.findall(asked) if not address.startswith("127.") and address != "::1"
    } == set()
