"""What every agent gets, over both transports: tools, resources, prompts, refusals, many calls at once, cancelling."""

import asyncio
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import mcp
import pytest

from holdfast.core.text import estimate_tokens
from holdfast.doors.mcp.tools import TOOLS
from tests.doors.mcp.clients import Connected, call_tools, over_stdio, text_of
from tests.doors.mcp.conftest import DECISION
from tests.kit import BIN, World, awaited, wait_until

Connect = Callable[[], Connected]
DATED = re.compile(r"^\S+ \| (\d{4}-\d\d-\d\dT\d\d:\d\dZ|undated) \| [^|]+ \| ")


@pytest.fixture
def other_process() -> Iterator[int]:
    process = subprocess.Popen(["sleep", "120"])
    yield process.pid
    process.kill()
    process.wait()


def with_session(connect: Connect, act: Callable[[mcp.ClientSession], Any]) -> Any:
    async def run() -> Any:
        async with connect() as session:
            return await act(session)

    return awaited(run())


def test_the_list_is_small_and_every_tool_says_what_it_does(connect: Connect) -> None:
    listed = with_session(connect, lambda session: session.list_tools())
    assert [tool.name for tool in listed.tools] == list(TOOLS)
    for tool in listed.tools:
        assert tool.annotations and tool.annotations.read_only_hint is not None
        assert tool.annotations.read_only_hint or tool.annotations.destructive_hint is False
        assert tool.output_schema and tool.description
        # What lists things promises a list, and takes a cursor.
        assert (tool.output_schema.get("required") == ["items"]) == (
            "cursor" in tool.input_schema["properties"] or tool.name == "memory_timeline"
        )
    tools = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed.tools]
    assert estimate_tokens(json.dumps(tools, separators=(",", ":"))) <= 1000


def test_every_tool_answers(connect: Connect, world: World) -> None:
    """The SDK's client checks structured content against the output schema."""
    said = f"e{world.events(kinds=('prompt.submitted',))[0].seq}"
    listed = world.view("memory.listed", everywhere=True)["observations"]
    memory = next(doc["id"] for doc in listed if doc["text"] == DECISION)
    search, timeline, details, added, *others = call_tools(
        connect(), ("memory_search", {"query": "event store database"}), ("memory_timeline", {"id": said}),
        ("memory_details", {"id": memory}), ("memory_add", {"text": "The cache is cold on Mondays"}),
        *((name, {}) for name in ("gates", "tasks", "state", "leases", "uat_runs")),
    )  # fmt: skip
    assert DECISION in text_of(search) and DECISION in text_of(timeline)
    assert "<system" not in text_of(timeline) + json.dumps(timeline.structured_content)
    assert all(DATED.match(line) for line in text_of(search).splitlines())
    assert details.structured_content and details.structured_content["evidence"]
    assert added.structured_content and added.structured_content["by"] == "agent"
    assert all(not one.is_error and one.structured_content is not None for one in others)


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("memory_search", {}, "query"),
        ("memory_search", {"query": ""}, "query takes text of 1 to 1000 characters"),
        ("memory_search", {"query": "x" * 1001}, "query takes text of 1 to 1000 characters"),
        ("memory_search", {"query": "x", "limit": 51}, "limit takes an integer from 1 to 50"),
        ("memory_search", {"query": "x", "limit": "many"}, "limit takes an integer from 1 to 50"),
        ("memory_search", {"query": "x", "cursor": "abc"}, "cursor takes text, the nextCursor of the last answer"),
        ("memory_search", {"query": "x", "unknown": 1}, "unknown"),
        ("memory_search", {"query": "x", "type": "decisoin"}, "there is no type 'decisoin'. One of: decision, rule"),
        ("memory_search", {"query": "x", "project": "/no/such/folder"}, "no project of that path is known"),
        ("lease_acquire", {"name": "two\n", "pid": 1}, "name takes text of 1 to 200 characters, without line breaks"),
        (
            "memory_details",
            {"id": "m-unknown"},
            "there is no memory 'm-unknown'. Look for it with: the tool memory_search",
        ),
        ("memory_add", {"text": "x" * 501}, "text takes text of 1 to 500 characters"),
        ("memory_add", {"text": "x", "type": "poem"}, "there is no type"),
        ("lease_acquire", {"name": "a", "wait_seconds": -1, "pid": 1}, "wait_seconds takes a number from 0 to 600"),
        ("lease_release", {"name": "nothing-held", "pid": 1}, "nothing-held is not yours to release: nobody holds it."),
        ("uat_show", {"run": "no-such-run"}, "run"),
        ("code_search", {"query": ""}, "query takes text of 1 to 1000 characters"),
        (
            "code_search",
            {"query": "outline ../../etc/passwd"},
            "is not in the index. Look for it with the tool code_search",
        ),
        ("tasks", {"project": "no-such-project"}, "no-such-project"),
    ],
)
def test_bad_arguments_are_answered_with_the_reason(
    world: World, name: str, arguments: dict[str, Any], why: str
) -> None:
    [answer] = call_tools(over_stdio(world), (name, arguments))
    assert answer.is_error and why in text_of(answer)
    assert "--" not in text_of(answer), "an option of the command line is nothing a tool has"


def test_a_place_that_no_file_has_is_said_to_be_none(world: World) -> None:
    [answer] = call_tools(over_stdio(world), ("code_search", {"query": "related a:99999999999999999999"}))
    assert answer.is_error and "is not in the index" in text_of(answer)


def test_behind_the_last_page_there_is_nothing_more(connect: Connect) -> None:
    past, none = call_tools(
        connect(), ("memory_search", {"query": "event store", "cursor": "900"}), ("memory_search", {"query": "qqqq"})
    )
    assert (text_of(past), text_of(none)) == ("Nothing more.", "Nothing found. Try other words.")


def test_an_unknown_tool_is_a_protocol_error(connect: Connect) -> None:
    async def ask(session: mcp.ClientSession) -> str:
        try:
            await session.call_tool("nonsense", {})
        except mcp.MCPError as error:
            return str(error)
        return ""

    assert "there is no tool 'nonsense'" in with_session(connect, ask)


def test_pages_follow_a_cursor(connect: Connect, world: World) -> None:
    for number in range(5):
        world.ask(
            op="command",
            name="memory.add",
            args={"text": f"The cache number {number} is cold"},
            project=str(world.project),
        )

    async def walk(session: mcp.ClientSession) -> list[str]:
        found: list[str] = []
        cursor = ""
        for _ in range(10):
            page = (
                await session.call_tool("memory_search", {"query": "cold cache", "limit": 2, "cursor": cursor})
            ).structured_content
            assert page is not None
            found += [row["id"] for row in page["items"]]
            cursor = page.get("nextCursor", "")
            if not cursor:
                break
        return found

    found = with_session(connect, walk)
    assert len(found) == len(set(found)) >= 5


def test_a_hundred_calls_at_once(connect: Connect) -> None:
    async def ask(session: mcp.ClientSession) -> list[mcp.types.CallToolResult]:
        calls = [session.call_tool("memory_search", {"query": f"event store {n}"}) for n in range(100)]
        return list(await asyncio.gather(*calls))

    answers = with_session(connect, ask)
    assert len(answers) == 100 and all(not one.is_error for one in answers)


def test_a_cancelled_wait_never_gets_the_lease(connect: Connect, world: World, other_process: int) -> None:
    """The lease is free again after the waiting call was cancelled: it must stay free."""
    held = {"lease": "database", "pid": other_process, "exactly": True}
    world.ask(op="command", name="project.acquire", args=held)
    wait = {"name": "database", "wait_seconds": 60, "pid": os.getpid()}

    async def cancel(session: mcp.ClientSession) -> None:
        waiting = asyncio.create_task(session.call_tool("lease_acquire", wait))
        while not _waiters(world):
            await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        while _waiters(world):
            await asyncio.sleep(0.01)

    with_session(connect, cancel)
    world.ask(op="command", name="project.release", args=held)
    assert world.view("project.leases")["leases"] == []


def test_a_cancellation_that_comes_after_the_grant_takes_it_back(world: World) -> None:
    """The answer and the cancellation may cross on their way."""
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    with RawConnection(world) as raw:
        raw.send(
            {
                "jsonrpc": "2.0",
                "id": 7,
                "method": "tools/call",
                "params": {"name": "lease_acquire", "arguments": {"name": "port"}},
            }
        )
        assert raw.read()["result"]["structuredContent"]["answer"] == "granted"
        raw.send(cancel)
        wait_until(lambda: world.view("project.leases")["leases"] == [], "the lease is free again")


def test_a_waiting_call_reports_progress(connect: Connect, world: World, other_process: int) -> None:
    lease = f"port-{other_process}"
    world.ask(op="command", name="project.acquire", args={"lease": lease, "pid": other_process, "exactly": True})
    seen: list[tuple[float, str]] = []

    async def ask(session: mcp.ClientSession) -> mcp.types.CallToolResult:
        async def note(done: float, _total: float | None, message: str | None) -> None:
            seen.append((done, message or ""))

        wait = {"name": lease, "wait_seconds": 2.5, "pid": os.getpid()}
        return await session.call_tool("lease_acquire", wait, progress_callback=note)

    answer = with_session(connect, ask)
    assert answer.structured_content["answer"] == "busy"
    assert seen and seen == sorted(seen)


def test_resources_and_prompts(connect: Connect) -> None:
    async def ask(session: mcp.ClientSession) -> list[str]:
        listed = [str(one.uri) for one in (await session.list_resources()).resources]
        read = [(await session.read_resource(uri)).contents[0] for uri in listed]
        prompts = [one.name for one in (await session.list_prompts()).prompts]
        got = [(await session.get_prompt(name, {})).messages[0].content for name in prompts]
        return [*listed, *prompts, *(one.text for one in (*read, *got))]

    found = with_session(connect, ask)
    assert found[:3] == ["holdfast://state", "holdfast://tasks", "holdfast://session/session-1"]
    assert found[3:5] == ["hand_over", "what_changed"]
    state, _tasks, timeline, hand_over, _changed = found[5:]
    assert state.startswith("project: ")
    assert DECISION in timeline and DECISION in hand_over


def test_messages_that_are_none_are_answered(world: World) -> None:
    with RawConnection(world) as raw:
        for message, code in ((b"{", -32700), (b"3", -32600), (b'{"id": 1, "method": "no/such"}', -32601)):
            raw.process.stdin.write(message + b"\n")
            raw.process.stdin.flush()
            assert raw.read()["error"]["code"] == code


def test_it_is_ready_without_heavy_imports(world: World) -> None:
    """What makes a start slow is imports; the SDK, pydantic, typer and numpy belong to others."""
    program = (
        "import sys; sys.argv = ['holdfast', 'mcp']; from holdfast.doors.cli import main; main(); print(*sys.modules)"
    )
    done = subprocess.run(
        [BIN / "python", "-c", program], env=world.env, cwd=world.project, input=b"", capture_output=True, check=True
    )
    loaded = {name.partition(".")[0] for name in done.stdout.decode().split()}
    assert not loaded & {"mcp", "pydantic", "typer", "rich", "numpy", "asyncio", "apsw", "fastapi", "uvicorn"}


class RawConnection:
    """Lines to and from `holdfast mcp`, for what no well-behaved client sends."""

    def __init__(self, world: World) -> None:
        self.process = subprocess.Popen(
            [BIN / "holdfast", "mcp"], env=world.env, cwd=world.project, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __enter__(self) -> "RawConnection":
        return self

    def __exit__(self, *_exception: object) -> None:
        self.process.communicate(timeout=20)

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> Any:
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())


def _waiters(world: World) -> list[Any]:
    return [one for lease in world.view("project.leases")["leases"] for one in lease["waiters"]]
