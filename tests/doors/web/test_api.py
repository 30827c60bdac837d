"""The API: the same answers as the command line's --json, pages by cursor, errors that say what to do, never a 5xx."""

import contextlib
import json
import os
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import InvalidArgument, Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, status_code_conformance

from tests.kit import wait_until

from .conftest import Door

EXAMPLES = 20 if os.environ.get("HOLDFAST_EXPLORE") else 2
"""Of each operation, right and wrong ones; making them up is what takes the time."""


def test_no_question_breaks_it(lived_in: Door):
    """schemathesis makes up questions from our own description: right ones, and wrong ones."""
    described = schemathesis.openapi.from_dict(lived_in.api("openapi.json")).exclude(path="/api/v1/live")
    operations = [found.ok() for found in described.get_all_operations()]
    assert len(operations) > 20
    for operation in operations:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            with contextlib.suppress(Unsatisfiable, InvalidArgument):  # Some have nothing that could be wrong.
                _questioned(operation, mode, lived_in)


def _questioned(operation: Any, mode: GenerationMode, door: Door) -> None:
    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    def ask(case: schemathesis.Case) -> None:
        answer = case.call(base_url=f"http://127.0.0.1:{door.port}", headers=door.as_program)
        case.validate_response(answer, checks=[not_a_server_error, content_type_conformance, status_code_conformance])

    ask()


def test_it_is_openapi_3_1_and_says_who_may(lived_in: Door):
    found = lived_in.api("openapi.json")
    assert found["openapi"].startswith("3.1")
    assert all(path.startswith("/api/v1/") for path in found["paths"])
    assert {"/api/v1/sessions", "/api/v1/events/{seq}", "/api/v1/commands/{name}", "/api/v1/live"} <= set(
        found["paths"]
    )


@pytest.mark.quick
def newest(answer: dict) -> list[int]:
    return [event["seq"] for event in answer["events"]][-5:]


def test_the_same_as_the_command_line(lived_in: Door):
    world = lived_in.world
    assert lived_in.api("sessions?all=true")["data"]["sessions"] == world.json("sessions", "list", "--all")["sessions"]
    # A background job may report between the two requests.
    wait_until(
        lambda: newest(lived_in.api("events?limit=500")["data"]) == newest(world.json("events", "list")),
        "the same events",
    )
    assert lived_in.api("leases")["data"]["leases"] == []
    project = str(world.project)
    tasks, asked = lived_in.api(f"tasks?project={project}")["data"], world.view("project.tasks", project=project)
    # Each looks at the files by itself.
    assert {**tasks, "looked_at": 0} == {**asked, "looked_at": 0}


def test_pages_by_cursor_are_the_whole(lived_in: Door):
    every = [e.seq for e in lived_in.world.events()]
    for path, inside in (("events?limit=3", "events"), ("events?limit=3&after=2", "events")):
        seen, cursor = [], ""
        while True:
            page = lived_in.api(f"{path}&cursor={cursor}" if cursor else path)
            seen.append([e["seq"] for e in page["data"][inside]])
            cursor = page["next"]
            if not cursor:
                break
        whole = [seq for page in (seen if "after" in path else reversed(seen)) for seq in page]
        # A job may have reported meanwhile.
        whole = [seq for seq in whole if seq <= every[-1]]
        assert whole == [seq for seq in every if "after" not in path or seq > 2]
    first = lived_in.api("sessions?all=true&limit=1")
    second = lived_in.api(f"sessions?all=true&limit=1&cursor={first['next']}")
    assert [p["data"]["sessions"][0]["id"] for p in (first, second)] == ["second", "first"]


def test_a_session_by_range(lived_in: Door):
    marks = lived_in.api("sessions/first/marks")["data"]
    rows = lived_in.api(f"sessions/first/rows?start={marks['marks'][0]}")["data"]["rows"]
    assert marks["total"] == len(rows)
    assert rows[-1]["seq"] == marks["last"]
    kinds = [row["kind"] for row in rows]
    assert "tool.started" not in kinds
    assert kinds.count("tool.finished") == 2
    assert [row["kind"] for row in lived_in.api("sessions/first/rows?only=failures")["data"]["rows"]] == ["tool.failed"]
    found = lived_in.api("sessions/first/rows?q=MAKE%20TEST")["data"]["rows"]
    assert {row["kind"] for row in found} == {"tool.finished", "check.finished"}
    assert all("make test" in row["text"] for row in found)
    seen = lived_in.api("sessions/first/overview")["data"]
    assert (len(seen["turns"]), [lane["type"] for lane in seen["lanes"]]) == (1, ["explorer"])


@pytest.mark.quick
def test_errors_say_what_to_do(lived_in: Door):
    for path, status, kind in (
        ("sessions/nobody", 404, "CommandRefused"),
        ("events/999999", 404, "CommandRefused"),
        ("events?cursor=nonsense", 404, "CommandRefused"),
        ("events?limit=0", 422, "Unreadable"),
        ("search?q=x&project=/nowhere", 404, "Refused"),
    ):
        found, body, _ = lived_in.ask("GET", f"/api/v1/{path}", **lived_in.as_program)
        error = json.loads(body)["error"]
        assert (found, error["type"]) == (status, kind), (path, error)
        assert error["message"]
    assert (
        "holdfast session list"
        in json.loads(lived_in.ask("GET", "/api/v1/sessions/nobody", **lived_in.as_program)[1])["error"]["message"]
    )


def test_a_page_may_do_what_is_on_the_list_and_nothing_else(lived_in: Door):
    def order(name: str, **args: Any) -> tuple[int, Any]:
        body = json.dumps({"args": args, "project": str(lived_in.world.project), "session": "second"}).encode()
        status, told, _ = lived_in.ask("POST", f"/api/v1/commands/{name}", body, **lived_in.as_writing_page)
        return status, json.loads(told)

    status, told = order("log.note", text="seen on the dashboard")
    assert status == 200
    (note,) = [e for e in lived_in.world.events(kinds=("note.added",)) if e.seq == told["data"]["seq"]]
    assert (note.data["text"], note.session) == ("seen on the dashboard", "second")
    for name in ("uat.clean", "log.nothing", "../stop", "project.acquire"):
        assert order(name)[0] in (404, 409), name
    status, told = order("log.note")
    assert (status, told["error"]["message"]) == (409, "a note needs a text")
    for bad in (b"", b"[]", b"{", b'{"args": 7}', b'{"unknown": 1}', b"[" * 100_000):
        status, told, _ = lived_in.ask("POST", "/api/v1/commands/log.note", bad, **lived_in.as_writing_page)
        assert status == 422, (bad[:20], told)
