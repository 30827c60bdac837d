"""`make run`: the first minute in a temporary folder, with a made-up history and a short session through real hooks."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from made_up_history import write_history

from holdfast.core.machine import lease_holder
from holdfast.paths import Paths

BIN = Path(sys.executable).parent
SHOWN = (
    "session list --all --limit 8", "session timeline 0f5c2a9e", "cost project", "search index run", 'search "say hello"',
    "data verify", 'history "discount code"', "files",
)  # fmt: skip
BEHIND = 20
"""Events that may come while it is shown."""
SESSION = "0f5c2a9e-4a51-4c39-9a52-6b1d8f3e7c11"


def main() -> None:
    root = Path(tempfile.mkdtemp(prefix="holdfast-run-"))
    player = Player(root)
    say(f"A throw-away Holdfast: everything is in {root} and nothing of yours is touched.")
    try:
        player.set_up()
        player.play()
        player.show()
        player.dashboard()
    finally:
        player.close()
        shutil.rmtree(root, ignore_errors=True)
    say("That was a throw-away folder; it is gone now. For real, in your own agents:")
    print(f"  {BIN / 'holdfast'} up            starts it and puts the hooks into the agents it finds")
    print(f"  {BIN / 'holdfast'} uninstall     takes them out again; the files are exactly as they were")


def say(text: str) -> None:
    print(f"\n── {text}", flush=True)


class Player:
    def __init__(self, root: Path) -> None:
        self.root, self.repo = root, root / "work" / "greeter"
        home = root / "home"
        for folder in (self.repo, home / ".claude"):
            folder.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", "-b", "main"], cwd=self.repo, check=True)
        self.env = {
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "HOME": str(home),
            "HOLDFAST_STATE": str(root / "state"),
            "HOLDFAST_CONFIG": str(root / "config"),
            "LANG": "C.UTF-8",
            "COLUMNS": "110",
            **{name: os.environ[name] for name in ("TERM", "NO_COLOR") if name in os.environ},
        }

    def set_up(self) -> None:
        sessions = write_history(Path(self.env["HOME"]), self.root / "work")
        say(f"holdfast up --yes          (a made-up month: {sessions} sessions of Claude Code)")
        self.holdfast("up", "--yes", "--no-mcp")

    def play(self) -> None:
        """The payloads an agent sends, through the command lines `install` wrote into its settings."""
        say("A short session, through the hook commands now in settings.json")
        target = str(self.repo / "greet.py")
        call = {"tool_name": "Bash", "tool_input": {"command": "python greet.py"}}
        self.hook("SessionStart", source="startup", model="example-model")
        self.hook("UserPromptSubmit", prompt="Write greet.py and run it. The key is sk-ant-" + "x1Y2z3" * 8)
        write = {"tool_name": "Write", "tool_input": {"file_path": target, "content": "print('hello')\n"}}
        self.hook("PreToolUse", **write, tool_use_id="call-1")
        Path(target).write_text("print('hello')\n")
        self.hook("PostToolUse", **write, tool_use_id="call-1", tool_response={"filePath": target}, duration_ms=8)
        self.hook("PreToolUse", **call, tool_use_id="call-2")
        ran = subprocess.run([sys.executable, target], capture_output=True, text=True, check=False)
        response = {"stdout": ran.stdout, "stderr": ran.stderr, "interrupted": False}
        self.hook("PostToolUse", **call, tool_use_id="call-2", tool_response=response, duration_ms=31)
        self.hook("Stop", stop_hook_active=False, last_assistant_message="greet.py is there and says hello.")
        self.hook("SessionEnd", reason="prompt_input_exit")

    def hook(self, event: str, **fields: object) -> None:
        settings = json.loads((Path(self.env["HOME"]) / ".claude" / "settings.json").read_text())
        entry = settings["hooks"][event][0]["hooks"][0]
        common = {"session_id": SESSION, "transcript_path": f"{self.root}/t.jsonl", "cwd": str(self.repo)}
        payload = json.dumps({**common, "hook_event_name": event, **fields}).encode()
        command = [entry["command"], *entry.get("args", [])]
        env = {**self.env, "CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": str(self.repo)}
        done = subprocess.run(command, input=payload, env=env, cwd=self.repo, capture_output=True, check=False)
        told = f"  answered: {done.stdout.decode()}" if done.stdout else ""
        print(f"  {event:<17} exit {done.returncode}{told}", flush=True)

    def show(self) -> None:
        self.wait_for_history()
        for line in SHOWN:
            words = shlex.split(line)
            say(f"holdfast {line}")
            self.holdfast(*words)

    def wait_for_history(self) -> None:
        """Whatever was imported a moment ago can be found a little later."""
        until = time.monotonic() + 20
        while time.monotonic() < until:
            asked = [BIN / "holdfast", "history", "greet", "--json"]
            done = subprocess.run(asked, cwd=self.repo, env=self.env, capture_output=True, check=False)
            told = json.loads(done.stdout)["data"] if done.returncode == 0 else {"head": 1, "indexed": 0}
            if told["head"] - told["indexed"] < BEHIND:
                return
            time.sleep(0.2)

    def dashboard(self) -> None:
        """Only where somebody is there to look: its address ends with this."""
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            return
        say("holdfast dashboard")
        self.holdfast("dashboard")
        input("  It is open as long as this runs. Enter ends it all. ")

    def close(self) -> None:
        """By signal: an agent that runs this may not stop a daemon by command."""
        self.holdfast("dashboard", "--stop", quiet=True)
        lease = Paths(self.root / "state").lease
        if (pid := lease_holder(lease)) > 0:
            os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + 10
        while lease_holder(lease) > 0 and time.monotonic() < deadline:
            time.sleep(0.05)

    def holdfast(self, *words: str, quiet: bool = False) -> None:
        out = subprocess.DEVNULL if quiet else None
        subprocess.run([BIN / "holdfast", *words], cwd=self.repo, env=self.env, stdout=out, check=False)


if __name__ == "__main__":
    main()
