"""What the HTTP transport adds: who may connect, sessions, all projects of one person."""

import json
import os
from pathlib import Path

import psutil

from tests.doors.mcp.clients import Served, call_tools, over_http, text_of
from tests.kit import World


def test_only_whoever_has_the_token_and_no_web_page(served: Served) -> None:
    """P8. Host and Origin as a page in a browser, or a name that was bent to 127.0.0.1, would send them."""
    assert served.status(token="") == 401
    assert served.status(token="wrong") == 401
    assert served.status(Host="evil.example") == 421
    assert served.status(Host=f"evil.example:{served.port}") == 421
    assert served.status(Origin="http://evil.example") == 403
    assert served.status(Origin="null") == 403
    assert served.status(Sec_Fetch_Site="cross-site") == 403
    assert served.status(path="/") == 404
    assert served.status("OPTIONS", Origin="http://evil.example") == 403
    assert served.status() == 400
    assert served.status("GET") == 405


def test_a_session_begins_with_initialize_and_ends_with_delete(served: Served) -> None:
    begin = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
    answer = served.request(body=begin)
    session = answer.headers["mcp-session-id"]
    ping = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    assert json.loads(served.request(body=ping, Mcp_Session_Id=session).read()) == {
        "jsonrpc": "2.0",
        "id": 2,
        "result": {},
    }
    assert served.request("DELETE", Mcp_Session_Id=session).status == 204
    assert served.request(body=ping, Mcp_Session_Id=session).status == 404


def test_a_body_that_is_too_large_is_refused(served: Served) -> None:
    assert served.request(body="x" * (1 << 20) + "x").status == 413


def test_another_project_is_asked_by_argument_or_by_address(world: World, served: Served, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    agent = world.session("session-2", cwd=str(other))
    agent.env["CLAUDE_PROJECT_DIR"] = str(other)
    agent.start()
    agent.prompt("Always use Kafka for the queue.")
    agent.stop("Done.")
    query = {"query": "which queue do we use"}
    [here, there] = call_tools(
        over_http(served), ("memory_search", query), ("memory_search", {**query, "project": str(other)})
    )
    assert "Kafka" not in text_of(here) and "Kafka" in text_of(there)
    [addressed] = call_tools(over_http(served, f"?project={other}"), ("memory_search", query))
    assert "Kafka" in text_of(addressed)


def test_a_lease_is_for_the_process_that_is_named(served: Served) -> None:
    mine = {"name": "database", "pid": os.getpid()}
    unnamed, granted, shown, released = call_tools(
        over_http(served), ("lease_acquire", {"name": "database"}), ("lease_acquire", mine), ("leases", {}),
        ("lease_release", mine),
    )  # fmt: skip
    assert unnamed.is_error and "which process" in text_of(unnamed)
    assert granted.structured_content and granted.structured_content["pid"] == os.getpid()
    assert "database" in text_of(shown) and not released.is_error


def test_it_listens_on_loopback_only(served: Served) -> None:
    listening = [c for c in psutil.Process(served.process.pid).net_connections() if c.status == "LISTEN"]
    assert {c.laddr.ip for c in listening} == {"127.0.0.1"}
