"""An agent's process, as far as hooks see one: it starts the commands it is told to, and lives until it is told to end.

It stands alone (`python -I -S agent.py NAME`): one JSON line in for each hook, one out with what the hook answered.
A tool that is still running is a child of it, as it would be with an agent.
"""

import json
import subprocess
import sys

RUNNING = "import sys; sys.stdin.read()"


def main() -> None:
    call_me(sys.argv[1])
    tools = []
    for line in sys.stdin:
        told = json.loads(line)
        if told.get("tool"):
            tools.append(subprocess.Popen([sys.executable, "-I", "-S", "-c", RUNNING], stdin=subprocess.PIPE))
            answer = {"pid": tools[-1].pid}
        else:
            answer = fire(told)
        print(json.dumps(answer), flush=True)
    for tool in tools:
        tool.communicate()


def fire(told: dict) -> dict:
    done = subprocess.run(
        told["command"], input=told["body"].encode(), env=told["env"], cwd=told["cwd"], capture_output=True, check=False
    )
    return {"code": done.returncode, "out": done.stdout.decode("utf-8", "replace")}


def call_me(name: str) -> None:
    """So that a list of processes tells who it is."""
    try:
        with open("/proc/self/comm", "w", encoding="utf-8") as file:
            file.write(name[:15])
    except OSError:
        pass


if __name__ == "__main__":
    main()
