"""One figure, one source: what the API, the pages, MCP and the exports say of the same session of each agent."""

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from holdfast.agents import AGENTS
from holdfast.agents.intake import Intake
from holdfast.analysis.usage.report import format_dollars
from holdfast.core.decision import Delivery
from holdfast.core.event import Event
from holdfast.core.git_context import CachedGitContext
from holdfast.core.kinds import TOOL_ENDS
from holdfast.core.times import format_duration
from holdfast.doors.mcp.context import Caller, Context
from holdfast.doors.mcp.resources import timeline_lines
from holdfast.doors.web import pages
from holdfast.doors.web.pages import format_span
from holdfast.features.sessions.state import documents
from holdfast.features.sessions.state.documents import Session
from holdfast.features.sessions.views.figures import ENDS_IN_WORDS, describe_end
from tests.doors.web.conftest import Door, serving
from tests.factories import a_key
from tests.features.sessions.test_timelines import PARTS, SESSION, a_whole_session
from tests.kit import World

FIGURES = (
    "state", "duration_ms", "turn_n", "prompts", "tools", "failed", "denied", "edits", "tokens", "total_tokens", "cost",
    "open_gates",
)  # fmt: skip
BEGIN = 1_794_724_359_000


def events_of(agent: str) -> Iterator[Event]:
    """A scripted session through the agent's adapter; one permission is refused, and the model tells what it took."""
    intake = Intake(AGENTS, CachedGitContext(), lambda body: (body, 0))
    for n, (stem, payload) in enumerate(a_whole_session(agent).hooks):
        name = str(payload.get("hook_event_name") or payload.get("hook") or stem.partition(".")[0])
        at, body = BEGIN + n * 1000, json.dumps(payload).replace(SESSION, f"{agent}-figures").encode()
        read = intake.read(Delivery(key=a_key(), agent=agent, event=name, mode="tell", at=at, cwd="/p", body=body))
        yield msgspec.structs.replace(read, key=a_key().replace("-", ""), at=at)
    told = {"permission.denied": {"reason": "no"}, "model.answered": {
        "tokens": {"input": 900, "output": 50}, "turn_n": 1, "model": "claude-opus-5-5", "day": "2026-11-15"}}  # fmt: skip
    for kind, data in told.items():
        yield Event(
            key=a_key().replace("-", ""), kind=kind, at=BEGIN + 3000, session=f"{agent}-figures",
            agent=agent, project="/p", data=data,
        )  # fmt: skip


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    world = World(tmp_path_factory.mktemp("figures"))
    try:
        world.start()
        for agent in PARTS:
            world.ask(op="ingest", events=msgspec.to_builtins(list(events_of(agent))))
        with serving(world) as opened:
            yield opened
    finally:
        world.close()


def figures(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in FIGURES}


@pytest.mark.parametrize("agent", PARTS)
def test_every_door_says_the_same(door: Door, agent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"{agent}-figures"
    shown = door.api(f"sessions/{name}")["data"]
    assert (shown["total_tokens"], shown["denied"], shown["turn_n"]) == (950, 1, 2)
    listed = {row["id"]: row for row in door.api("sessions?all=true&limit=50")["data"]["sessions"]}
    timeline = door.api(f"sessions/{name}/timeline")["data"]["session"]
    exported = json.loads(door.world.view("sessions.export", id=name, format="jsonl")["text"].splitlines()[0])
    for row in (listed[name], timeline, exported, door.world.view("sessions.show", id=name)):
        assert figures(row) == figures(shown)
    check_page(door.page(f"/session/{name}"), shown)
    assert f'href="/session/{name}" title="{shown["title"]}"' in door.page("/cost?by=session&days=all")
    for variable, value in door.world.env.items():
        monkeypatch.setenv(variable, value)
    check_resource(list(timeline_lines(name, Context(Caller("/elsewhere"), lambda *_: None))), name, shown)
    markdown = door.world.view("sessions.export", id=name, format="md")["text"].replace("\\", "")
    assert f"**cost**: {format_dollars(shown['cost'])}" in markdown and f"**state**: {shown['state']}" in markdown
    assert f"**duration**: {format_duration(shown['duration_ms'])}" in markdown
    check_rows(door.world.view("sessions.timeline", id=name, limit=500)["entries"], shown)
    check_lines(door.world, name, shown)


def check_rows(rows: list[dict[str, Any]], shown: dict[str, Any]) -> None:
    """The figures are what the rows add up to."""
    ended = [row["outcome"] for row in rows if row["kind"] in TOOL_ENDS]
    assert (len(ended), ended.count("failed")) == (shown["tools"], shown["failed"])
    assert sum(row["kind"] == "permission.denied" or row["outcome"] == "denied" for row in rows) == shown["denied"]
    typed = [row for row in rows if row["kind"] == "prompt.submitted" and not row["synthetic"] and not row["lane"]]
    assert len(typed) == shown["prompts"]


def check_lines(world: World, name: str, shown: dict[str, Any]) -> None:
    """What is said in a line: the status line, the summary, the sums of cost."""
    money, tokens = format_dollars(shown["cost"]), shown["total_tokens"]
    assert world.cli("statusline", name).strip() == f"{money} · {tokens} tokens"
    summary = world.view("sessions.show", id=name)["summary"]
    assert [summary[figure] for figure in ("prompts", "tools", "failed", "denied", "edits", "ms")] == [
        shown[figure] for figure in ("prompts", "tools", "failed", "denied", "edits", "duration_ms")
    ]
    assert f"{shown['prompts']} prompts, {shown['tools']} tool calls" in summary["text"]
    (spent,) = world.json("cost", "session", "--session", name)["groups"]
    assert (spent["tokens"]["total"], spent["cost_micro_dollars"]) == (tokens, shown["cost"])


def check_page(page: str, shown: dict[str, Any]) -> None:
    facts = {
        label: re.sub(r"<[^>]+>", "", text).strip()
        for label, text in re.findall(r"<dt>([^<]+)</dt><dd>(.*?)</dd>", page, re.DOTALL)
    }
    failed = f" {shown['failed']} failed" if shown["failed"] else ""
    wanted = {
        "Prompts": f"{shown['prompts']}", "Tools": f"{shown['tools']}{failed}", "Denied": f"{shown['denied']}",
        "Edits": f"{shown['edits']}", "Open gates": f"{shown['open_gates']}", "Tokens": f"{shown['total_tokens']}",
        "Cost": format_dollars(shown["cost"]), "Duration": format_span(shown["duration_ms"]),
    }  # fmt: skip
    assert {label: facts[label] for label in wanted} == wanted


def check_resource(lines: list[str], name: str, shown: dict[str, Any]) -> None:
    assert lines[0].startswith(f"session {name} |") and lines[0].endswith(f"| {shown['state']}")
    counts = [
        int(n) for n in re.findall(r"(\d+) (?:turns|prompts|tool calls|failed|denied|edits|open gates)", lines[1])
    ]
    names = ("turn_n", "prompts", "tools", "failed", "denied", "edits", "open_gates")
    assert counts == [shown[figure] for figure in names]
    assert lines[1].endswith(f"| {shown['total_tokens']} tokens | {format_dollars(shown['cost'])}")


def test_every_way_a_session_can_end_has_words() -> None:
    assert set(ENDS_IN_WORDS) == set(documents.END_REASONS)
    assert describe_end(Session(id="s", reason="a reason of tomorrow")) == "a reason of tomorrow"


def test_an_imported_session_does_not_say_that_it_ended_normally() -> None:
    """A transcript tells until when it was written, not whether its agent exited or was killed."""
    assert describe_end(Session(id="s", reason="exit", detail="import", at_end="working")) == "imported"
    assert describe_end(Session(id="s")) == ""


@pytest.mark.parametrize(
    ("reason", "detail", "at_end", "words"),
    [
        ("exit", "other", "answered", "ended normally"),
        ("exit", "other", "working", "ended with an open turn"),
        ("exit", "logout", "answered", "ended by the person"),
        ("exit", "terminal-closed", "asking", "its terminal was closed while it asked its person"),
        ("process-gone", "", "answered", "its process is gone after its answer"),
        ("process-gone", "", "working", "its process is gone in the middle of its work"),
        ("stale", "", "working", "no sign of life"),
    ],
)
def test_an_end_says_what_was_seen(reason: str, detail: str, at_end: str, words: str) -> None:
    assert describe_end(Session(id="s", reason=reason, detail=detail, at_end=at_end)) == words


@pytest.mark.parametrize(("ms", "shown"), [(0.187, "0.19 ms"), (50.997, "51.0 ms"), (413.115, "413 ms")])
def test_a_latency_has_three_digits(ms: float, shown: str) -> None:
    assert pages.format_latency(ms) == shown
