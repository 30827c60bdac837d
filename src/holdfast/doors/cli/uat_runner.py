"""`holdfast uat run`: runs scenarios with an installed agent in headless mode and reads the results from the log."""

import shlex
import shutil
import subprocess
import time
from typing import Any

import msgspec

from holdfast import client
from holdfast.agents import AGENTS
from holdfast.core.errors import CommandRefused

SETTLE_S = 10.0
RUNS_READ = 20


class HeadlessAgent(msgspec.Struct, frozen=True):
    name: str
    argv: tuple[str, ...]


def headless_agents() -> list[str]:
    return [agent.name for agent in AGENTS.values() if agent.headless]


def find_agent(name: str) -> HeadlessAgent:
    """The first installed one, if none is named."""
    wanted = [one for one in AGENTS.values() if one.headless and (not name or name in (one.name, *one.aliases))]
    known = ", ".join(headless_agents())
    if not wanted:
        raise CommandRefused(f"{name!r} is no agent that can be started", fix=f"Known: {known}.")
    for agent in wanted:
        if program := shutil.which(agent.program):
            return HeadlessAgent(agent.name, (program, *agent.headless[1:]))
    raise CommandRefused(f"{name} is not on PATH" if name else f"none of {known} is on PATH", fix="Install one first.")


def split_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise CommandRefused(f"--agent-args cannot be read: {error}", fix="Close each quotation mark.") from None


def scenarios_to_run(what: str) -> list[dict[str, Any]]:
    """Those with the tag, or the one of that name."""
    listed = client.ask_view("uat.scenarios")["scenarios"]
    matches = _with_tag(listed, what) or [one for one in listed if one["name"] == what]
    if not matches:
        tags = ", ".join(sorted({tag for one in listed for tag in one["tags"]})) or "none"
        names = ", ".join(one["name"] for one in listed) or "none"
        raise CommandRefused(f"no scenario has the tag or the name {what!r}", fix=f"Tags: {tags}. Scenarios: {names}.")
    return matches


def _with_tag(listed: list[dict[str, Any]], tag: str) -> list[dict[str, Any]]:
    return [one for one in listed if tag in one["tags"]]


def prompt_for(scenario: dict[str, Any]) -> str:
    return (
        f"Please test the {scenario['name']} scenario of uat/scenarios/{scenario['file']} now, in the browser. Begin with "
        f"`holdfast uat start '{scenario['name']}'`, do its steps in their order, look at the page where a step says so, "
        "take a screenshot whenever something fails, change no file of the project, and stop after the last step."
    )


def run_scenario(agent: HeadlessAgent, scenario: dict[str, Any], patience_s: int, words: list[str]) -> dict[str, Any]:
    # The daemon uses this machine's clock: later runs belong to this agent.
    began = int(time.time() * 1000)
    problem = ""
    try:
        argv = [*agent.argv, prompt_for(scenario), *words]
        # No terminal, no input: an agent with a question must not wait for ever.
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=patience_s, check=False)
        if done.returncode:
            problem = f"{agent.name} ended with {done.returncode}: {_last_line(done.stderr or done.stdout)}"
    except subprocess.TimeoutExpired:
        problem = f"{agent.name} took longer than {patience_s // 60} minutes"
    except OSError as error:
        problem = f"{agent.name} could not be started: {error.strerror}"
    run = _wait_for_run(scenario["name"], began)
    outcome = (run["outcome"] or "incomplete") if run else "incomplete"
    problem = problem or ("" if run else "no run was recorded; are Holdfast's hooks installed for this agent?")
    return {"scenario": scenario["name"], "outcome": outcome, "run": run["id"] if run else "", "problem": problem}


def _last_line(output: bytes) -> str:
    return (output.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"])[-1][:300]


def _wait_for_run(name: str, began: int) -> dict[str, Any] | None:
    """The agent has ended, so its run ends in a moment, with the session or here."""
    deadline = time.monotonic() + SETTLE_S
    run = _find_run(name, began)
    while run is not None and not run["outcome"] and time.monotonic() < deadline:
        time.sleep(0.2)
        run = _find_run(name, began)
    if run is not None and not run["outcome"]:
        client.run_command("uat.end", run=run["id"], reason="session-ended")
        run = _find_run(name, began)
    return run


def _find_run(name: str, began: int) -> dict[str, Any] | None:
    runs: list[dict[str, Any]] = client.ask_view("uat.list", limit=RUNS_READ)["runs"]
    return next((run for run in runs if run["scenario"] == name and run["start"] >= began), None)
