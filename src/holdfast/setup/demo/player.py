"""Plays a day: creates repositories, starts agents, fires hooks and sends commands, each at its time."""

import json
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import cycle
from pathlib import Path
from typing import Any

from holdfast import client
from holdfast.agents import AGENTS
from holdfast.core.errors import DaemonUnreachable, HoldfastError
from holdfast.core.times import now_ms
from holdfast.setup.demo.clock import Clock
from holdfast.setup.demo.dialects import DIALECTS, Stage
from holdfast.setup.demo.moments import Cast, Day, Moment, read_day
from holdfast.setup.demo.processes import HERE, PACKAGE, PATIENCE_S, Processes
from holdfast.setup.demo.repositories import Repo
from holdfast.setup.demo.transcripts import Transcript
from holdfast.setup.demo.weeks import session_records

BIN = Path(sys.executable).parent
NATIVE = BIN / "holdfast-hook"
HOOK = [str(NATIVE)] if NATIVE.exists() else [sys.executable, "-I", "-S", str(PACKAGE / "hook.py")]
"""For what is still running: the command that `install` writes. Recorded hooks run in agent.py."""
SETTLE_S, PATIENCE_ALL_S = 1.0, 6.0
LOOKS = frozenset(("project.refresh", "sessions.find", "sessions.summarise", "uat.scan", "uat.collect", "uat.write"))
"""Jobs that look at what the day has just done; the others may come later."""
# Forty hours before the day begins.
AGES_AGO_MS = 40 * 3_600_000
WEEKS = 11

# Nobody answers in a demo from elsewhere: its play goes on at once.
MODES = {
    name: {hook.event: "ask" if hook.mode == "wait" else hook.mode for hook in agent.hooks}
    for name, agent in AGENTS.items()
}


@dataclass
class Played:
    """The result; `surprises` are answers that the day does not expect."""

    hooks: int = 0
    refused: int = 0
    seconds: float = 0.0
    surprises: list[str] = field(default_factory=list)


class Player:
    """Everything is below `root`; nothing of the user's is read or written. This process moves there too."""

    def __init__(self, root: Path, tell: Callable[[str], None] = lambda _text: None, day: Path = HERE / "day.yaml"):
        self.root, self.home, self.state = root, root / "home", root / "state"
        self._tell, self._file = tell, day
        for folder in (self.home / ".claude", self.home / ".codex", root / "config"):
            folder.mkdir(parents=True)
        # Nothing of the user's environment but the PATH.
        self.env = {
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "HOLDFAST_STATE": str(self.state),
            "HOLDFAST_CONFIG": str(root / "config"),
            "LANG": "C.UTF-8",
        }
        os.environ.update(self.env)
        self.troupe = Processes(self.env)
        self.played = Played()
        self.day: Day
        self.repos: dict[str, Repo] = {}
        self._denied: set[str] = set()
        self._known: set[str] = set()
        self._patience = PATIENCE_ALL_S
        self._transcripts: dict[str, Transcript] = {}

    def play(self) -> Played:
        began = time.monotonic()
        self.day = read_day(self._file, ends=now_ms())
        self._set_the_stage()
        installing = self._install()
        clock = Clock(self.root / "clock")
        clock.begin(self.day.begins)
        moments = self.day.moments()
        self._recorded(clock, [m for m in moments if not m.step.get("now")])
        self._now([m for m in moments if m.step.get("now")])
        installing.wait(PATIENCE_S)
        self.played.seconds = time.monotonic() - began
        return self.played

    def go_on(self, pause: Callable[[float], None]) -> Iterator[None]:
        """Continue on the ordinary clock: one tool call per step, so that there is something to see."""
        casts = {cast.name: cast for cast in self.day.casts}
        for number, step in enumerate(cycle(self.day.goes_on)):
            cast, call, ms = casts[step["session"]], f"toolu_{uuid.uuid4().hex[:22]}", step.get("ms", 900)
            moment = Moment(now_ms(), number, cast, "before", step, call=call, turn=1, ms=ms)
            self._happens(moment, 0)
            pause(ms / 1000)
            self._happens(replace(moment, at=now_ms(), what="after"), 0)
            pause(step.get("after", 3.0))
            yield

    def close(self) -> None:
        self.troupe.close()
        client.stop_daemon("the demo is over")

    # ── the stage ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _set_the_stage(self) -> None:
        (self.root / "config" / "settings.yaml").write_text(self.day.settings)
        for name, project in self.day.projects.items():
            repo = self.repos[name] = Repo(self.root / name, self.home)
            repo.make(project["files"], self.day.begins - AGES_AGO_MS)
            for line in project.get("git", ()):
                repo.git(line, self.day.begins - AGES_AGO_MS // 2)

    def _install(self) -> subprocess.Popen[bytes]:
        """Into the agents of the demo's home, as on a machine that uses Holdfast."""
        words = [sys.executable, "-P", "-c", "from holdfast.doors.cli import main; main()", "install"]
        return subprocess.Popen(
            words, env=self.env, cwd=self.home, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def _stage(self, cast: Cast) -> Stage:
        return Stage(cast, self.repos[cast.project].root, self.home)

    # ── the day ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _recorded(self, clock: Clock, moments: list[Moment]) -> None:
        self._serve([sys.executable, "-P", "-m", "holdfast.setup.demo.daemon", str(clock.path)])
        client.ask_daemon("ingest", events=list(session_records(self.day.weeks, self.root, self.day.begins, WEEKS)))
        for number, moment in enumerate(moments):
            at = clock.move_to(moment.at)
            if number % 25 == 0:
                self._tell(f"{time.strftime('%H:%M', time.localtime(at / 1000))}  {moment.cast.project}")
            self._happens(moment, at)
        self._wait_for_looks(needed=True)
        client.stop_daemon("the day is over")

    def _now(self, moments: list[Moment]) -> None:
        """What is still running: an ordinary daemon and clock, and the installed hook."""
        self._serve([sys.executable, "-P", "-m", "holdfast.daemon"])
        for moment in moments:
            self._happens(moment, 0)
        self._wait_for_looks(needed=True)

    def _serve(self, command: list[str]) -> None:
        """With the demo's environment, because a daemon writes the seeds' files into its home."""
        subprocess.Popen(
            [*command, "--state", str(self.state)], env=self.env, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        deadline = time.monotonic() + PATIENCE_S
        while not _daemon_serves():
            if time.monotonic() > deadline:
                raise DaemonUnreachable("the demo's daemon does not serve", fix=f"See {self.state}/logs")
            time.sleep(0.01)

    def _happens(self, moment: Moment, at: int) -> None:
        match moment.what:
            case "crash":
                self._wait_for_looks(needed=True)
                self.troupe.crash(moment.cast)
                client.run_command("sessions.recover", kind="lost")  # As the watch would say a few seconds later.
            case "person":
                self._commanded(moment)
            # A refused tool does not run, so it has no end.
            case "after" if moment.call in self._denied:
                return
            case _:
                self._fired(moment, at)
        if moment.what in ("says", "person", "end") or (
            moment.what == "start" and moment.cast.project not in self._known
        ):
            self._known.add(moment.cast.project)
            self._wait_for_looks()
        if moment.what == "end":
            self.troupe.end_process(moment.cast)

    def _fired(self, moment: Moment, at: int) -> None:
        stage = self._stage(moment.cast)
        done = self._done(moment, at or now_ms())
        self._write_down(moment, stage)
        for event, payload in DIALECTS[moment.cast.agent].hook_payloads(stage, moment, done):
            answer = self._hook(moment.cast, stage, event, payload, at)
            self._note(moment, event, answer)
        if "running" in moment.step:
            self.troupe.send_hooks(moment.cast, {"tool": True})

    def _hook(self, cast: Cast, stage: Stage, event: str, payload: dict[str, Any], at: int) -> dict[str, Any]:
        words = [MODES[cast.agent][event], cast.agent, event]
        env = {**self.env, **DIALECTS[cast.agent].env(stage)}
        order = {
            "at": at, "command": HOOK, "words": words, "env": env, "cwd": str(stage.root), "body": json.dumps(payload),
        }  # fmt: skip
        self.played.hooks += 1
        out = self.troupe.send_hooks(cast, order).get("out") or "{}"
        value: dict[str, Any] = json.loads(out)
        return value

    def _note(self, moment: Moment, event: str, answer: dict[str, Any]) -> None:
        refused = is_refusal(answer)
        expected = bool(moment.step.get("denied")) and moment.what in ("before", "says", "prompt")
        self.played.refused += refused
        if refused and moment.call:
            self._denied.add(moment.call)
        if refused != expected:
            self.played.surprises.append(f"{moment.cast.name}: {event} {moment.step} was answered {answer}")

    # ── what the steps do in the world ─────────────────────────────────────────────────────────────────────────────

    def _done(self, moment: Moment, at: int) -> dict[str, Any]:
        if moment.what != "after":
            return {}
        step, repo = moment.step, self.repos[moment.cast.project]
        match step:
            case {"edit": path, "old": old, "new": new}:
                return repo.edit(path, old, new, at)
            case {"write": path, "text": text}:
                return repo.write(path, text, at)
            case {"read": path}:
                return {"file": str(repo.root / path), "text": (repo.root / path).read_text()}
            case {"git": words}:
                return {"out": repo.git(words, at)}
            case {"picture": name}:
                target = repo.root / step["given"]["filename"]
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(HERE / "pictures" / name, target)
        return {}

    def _write_down(self, moment: Moment, stage: Stage) -> None:
        transcript = self._transcripts.get(moment.cast.id)
        if transcript is None:
            path = DIALECTS[moment.cast.agent].transcript(stage)
            transcript = self._transcripts[moment.cast.id] = Transcript(moment.cast.agent, path, moment.cast.model)
        if moment.what == "compact":
            transcript.compacted()
        elif moment.what in ("before", "says"):
            words = len(str(moment.step.get("says") or moment.step.get("new") or moment.step.get("text") or "").split())
            transcript.answered(moment.at, words)

    def _commanded(self, moment: Moment) -> None:
        step, root = moment.step, str(self.repos[moment.cast.project].root)
        args = dict(step.get("args") or {})
        if args.pop("its_process", False):
            args |= {"pid": self.troupe.pid(moment.cast), "exactly": True}
        if step["person"].startswith("gates."):
            args |= {"repo": f"{root}/.git", "branch": self.repos[moment.cast.project].git("branch --show-current", 0)}
        session = "" if step.get("alone") else moment.cast.id
        try:
            client.ask_daemon("command", name=step["person"], args=args, session=session, project=root)
        except HoldfastError as error:
            self.played.surprises.append(f"{moment.cast.name}: {step['person']}: {error.message}")

    def _wait_for_looks(self, *, needed: bool = False) -> None:
        """Wait until the due looks have been taken, within a limit."""
        began = time.monotonic()
        deadline = began + (SETTLE_S if needed else min(SETTLE_S, self._patience))
        while time.monotonic() < deadline and self._are_looks_due():
            time.sleep(0.02)
        self._patience -= time.monotonic() - began

    def _are_looks_due(self) -> bool:
        now = client.ask_daemon("status")["now"]
        return any(
            job["kind"] in LOOKS and not job["dead"] and job["run_at"] <= now for job in client.ask_daemon("jobs")
        )


def _daemon_serves() -> bool:
    try:
        list(client.stream_replies("status", start=False))
    except HoldfastError:
        return False
    return True


def is_refusal(answer: dict[str, Any]) -> bool:
    specific = answer.get("hookSpecificOutput") or {}
    return specific.get("permissionDecision") == "deny" or answer.get("decision") in ("deny", "block")
