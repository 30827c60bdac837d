"""How far each coding agent is from being recorded: hooks in, version, trust, the hook line tried, sessions seen.

`up`, `doctor` and the Health page show the same steps. A step is done, missing, or unknown; what is missing names the
next command.
"""

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from holdfast import client
from holdfast.agents import AGENTS
from holdfast.core.agent import Agent
from holdfast.core.errors import HoldfastError, InstallRefused
from holdfast.core.times import time_ago
from holdfast.setup.doctor.agent_checks import VERSION, plugin_is_on, short_path, trust_problem
from holdfast.setup.doctor.checks import missing_git
from holdfast.setup.install import hooks
from holdfast.setup.install.hooks_text import client_command, state_words, words_of
from holdfast.setup.install.locations import install_levels, is_present

# In seconds.
VERSION_S = 10.0
SELF_TEST_S = 10.0
RECORDED_S = 5.0
WHOLE_VERSION = re.compile(r"\d+\.\d+\.\d+")
QUIET_KINDS = ("notification", "compact.ended", "compact.started", "session.ended")
"""Kinds that expect no answer: the self-test runs the line of one of them."""
# Parts of paths under which `uvx` and `pipx run` keep temporary environments.
TEMPORARY = ("/archive-v", "/builds-v", "/environments-v", "/pipx/.cache/", "/.cache/pipx/", "/pipx-")


class Step(msgspec.Struct, frozen=True):
    name: str
    done: bool | None
    """None: unknown."""
    text: str
    next: str = ""


class Readiness(msgspec.Struct, frozen=True):
    agent: str
    title: str
    steps: tuple[Step, ...]

    @property
    def ready(self) -> bool:
        return all(step.done is not False for step in self.steps)


def look_at_agents(*, self_test: bool = False) -> list[Readiness]:
    """Every agent found here; their versions are read concurrently."""
    present = [agent for agent in AGENTS.values() if is_present(agent)]
    seen = _sessions_by_agent()
    # Starting each program is slow, and they are independent.
    with ThreadPoolExecutor(max_workers=8) as workers:
        return list(workers.map(lambda agent: _look_at(agent, seen, self_test), present))


def _look_at(agent: Agent, seen: dict[str, Any], self_test: bool) -> Readiness:
    project = Path(client.current_project())
    where, step = _hooks_step(agent, project)
    steps = [step]
    if where:
        steps += [_version_step(agent), *_trust_step(agent, where[0].level, project)]
        if self_test:
            steps.append(_self_test_step(agent, where))
        steps.append(_seen_step(agent, seen.get(agent.name) or {}))
    return Readiness(agent.name, agent.title, tuple(steps))


def _hooks_step(agent: Agent, project: Path) -> tuple[list[hooks.Installed], Step]:
    try:
        for level in install_levels(agent):
            if entries := hooks.installed_hooks(agent, level, project):
                wrong = hooks.verify_installation(agent, level, project)
                again = f"holdfast install --agent {agent.name} --{level}"
                text = wrong[0] if wrong else f"in {short_path(entries[0].path)}"
                return entries, Step("hooks", not wrong, text, again if wrong else "")
    except InstallRefused as refusal:
        return [], Step("hooks", False, refusal.problem, refusal.fix)
    if agent.name == "claude-code" and plugin_is_on(project):
        return [], Step("hooks", True, "by the Holdfast plugin")
    return [], Step("hooks", False, "not in its settings", f"holdfast install --agent {agent.name}")


def _version_step(agent: Agent) -> Step:
    program = shutil.which(agent.program) if agent.setup else None
    if agent.setup is None or program is None:
        named = agent.program if agent.setup else agent.name
        return Step("version", None, f"unknown: there is no {named} on the PATH")
    version = version_of(program)
    if not version:
        return Step("version", None, f"unknown: {agent.program} --version printed none")
    shown_version = ".".join(map(str, version))
    if agent.setup.oldest and version < agent.setup.oldest:
        needed = ".".join(map(str, agent.setup.oldest))
        return Step(
            "version", False, f"{shown_version} is too old: hooks need {needed} or newer", f"update {agent.title}"
        )
    return Step("version", True, shown_version)


# The second argument is only part of the key: a replaced program is asked again.
@lru_cache(maxsize=64)
def _asked_version(program: str, _changed: int) -> tuple[int, ...]:
    if named := version_in_files(Path(program)):
        return named
    try:
        completed = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=VERSION_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    # Some programs print warnings or a name around the number.
    match = VERSION.search(completed.stdout)
    return tuple(int(part) for part in match.groups()) if match else ()


def version_in_files(program: Path) -> tuple[int, ...]:
    """The version in an npm package's own file, or in the name of a versioned program; running a program may
    make it unpack or update itself."""
    program = program.resolve()
    if WHOLE_VERSION.fullmatch(program.name):
        return tuple(int(part) for part in program.name.split("."))
    for folder in program.parents:
        if "node_modules" not in folder.parts:
            break
        if (package := folder / "package.json").is_file():
            return _version_in_package(package)
    return ()


def _version_in_package(package: Path) -> tuple[int, ...]:
    try:
        match = VERSION.search(str(json.loads(package.read_bytes()).get("version")))
    except (OSError, ValueError, AttributeError):
        return ()
    return tuple(int(part) for part in match.groups()) if match else ()


def version_of(program: str) -> tuple[int, ...]:
    """Asked again only when the program has changed: starting it takes longer than everything else here."""
    try:
        changed = Path(program).resolve().stat().st_mtime_ns
    except OSError:
        changed = 0
    return _asked_version(program, changed)


def _trust_step(agent: Agent, level: str, project: Path) -> list[Step]:
    problem, fix = trust_problem(agent, level, project)
    if problem:
        return [Step("trust", False, problem, fix)]
    asks = agent.setup is not None and agent.setup.hold_up is not None
    return [Step("trust", True, f"reviewed in {agent.title}")] if asks else []


def _self_test_step(agent: Agent, entries: list[hooks.Installed]) -> Step:
    """Run a hook line exactly as in the settings, and check that the daemon recorded it."""
    chosen = _quiet_entry(agent, entries)
    if chosen is None:
        return Step("self-test", None, "it has no hook that can be tried without a session")
    event, command = chosen
    try:
        head = int(client.ask_daemon("status")["counts"]["events"])
        began = time.monotonic()
        # Without a session, so that the self-test creates none.
        payload = json.dumps({"hook_event_name": event, "session_id": "", "message": "Holdfast self-test"}).encode()
        done = subprocess.run(command, input=payload, capture_output=True, timeout=SELF_TEST_S, check=False)
        took = (time.monotonic() - began) * 1000
        if done.returncode:
            return Step("self-test", False, f"the hook line ended with {done.returncode}", "holdfast doctor --fix")
        if not _was_recorded(agent, event, head):
            return Step("self-test", False, "the hook line ran, but no event was recorded", "holdfast daemon logs")
    except (OSError, subprocess.TimeoutExpired, HoldfastError) as error:
        return Step("self-test", False, f"the hook line could not be run: {error}", "holdfast doctor --fix")
    what = "the hook program (its plugin runs only in it)" if _is_plugin(agent) else "the installed hook line"
    return Step("self-test", True, f"{what} recorded an event in {took:.0f} ms")


def _is_plugin(agent: Agent) -> bool:
    return bool(agent.setup and agent.setup.layout == "text")


def _quiet_entry(agent: Agent, entries: list[hooks.Installed]) -> tuple[str, list[str]] | None:
    lines = {one.event: words_of(_entry_of(one.entry)) for one in entries}
    for kind in QUIET_KINDS:
        for hook in agent.hooks:
            # Hooks of mode `tell` get no answer, so trying one decides nothing.
            if hook.kind != kind or not hook.register or hook.mode != "tell":
                continue
            if words := lines.get(hook.event):
                return hook.event, words
            # A plugin's own line runs only inside the agent; its program is tried instead.
            if _is_plugin(agent):
                words = [*client_command(), *state_words(client.state_paths().state), hook.mode, agent.name, hook.event]
                return hook.event, words
    return None


def _entry_of(entry: dict[str, Any]) -> Any:
    inner = entry.get("hooks")
    return inner[0] if isinstance(inner, list) and inner else entry


def _was_recorded(agent: Agent, event: str, head: int) -> bool:
    deadline = time.monotonic() + RECORDED_S
    while time.monotonic() < deadline:
        page = client.ask_view("log.events", limit=50)["events"]
        for one in page:
            # Other events may arrive at the same time: number, agent and name must match.
            if one["seq"] > head and one["agent"] == agent.name and one["data"].get("native") == event:
                return True
        time.sleep(0.02)
    return False


def _seen_step(agent: Agent, seen: dict[str, Any]) -> Step:
    if seen.get("last"):
        many = "1 session" if seen["sessions"] == 1 else f"{seen['sessions']} sessions"
        return Step("seen", True, f"{many} on record, the last {time_ago(seen['last'])}")
    program = agent.program if agent.setup else agent.name
    return Step("seen", None, "no session yet", f"start {program} and work as always")


def _sessions_by_agent() -> dict[str, Any]:
    try:
        answer: dict[str, Any] = client.ask_view("sessions.agents") if client.running_pid() else {}
    except HoldfastError:
        return {}  # a daemon of an older version
    return answer


def temporary_environment() -> str:
    """Why this installation will not stay, or empty: `uvx` and `pipx run` keep it in a cache that gets emptied."""
    prefix = f"{Path(sys.prefix).resolve()}/"
    return f"Holdfast runs from a cache ({sys.prefix})" if any(part in prefix for part in TEMPORARY) else ""


def next_commands(agents: Iterable[Readiness]) -> list[str]:
    """The remaining steps, each once: first what keeps an agent from being recorded, then what is unknown."""
    steps = [step for one in agents for step in one.steps if step.next and not step.done]
    keep = ["uv tool install holdfast-agents && holdfast up"] if temporary_environment() else []
    keep += ["install git, then: holdfast up"] if missing_git() else []
    # Problems precede unknowns.
    ordered = [step.next for step in steps if step.done is False] + [step.next for step in steps if step.done is None]
    return list(dict.fromkeys([*keep, *ordered]))
