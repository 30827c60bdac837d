"""UAT with a real browser: Debian's chromium, Playwright's MCP server, real Claude Code, a small site of our own."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.features.uat.site import site
from tests.kit import World, wait_until

from .claude import ClaudeCode
from .model_server import ModelServer, Turn, call, text
from .programs import ProgramUnavailable, program

pytestmark = pytest.mark.real

PASS, FAIL = "lovelace", "babbage"
SCENARIO = """\
name: login-flow
description: User authentication flow testing
tags: [smoke]
base_url: {url}
steps:
  - {{action: navigate, description: Navigate to login page, arguments: {{url: "/auth/login"}}, expected_ms: 10000}}
  - {{action: fill, description: Fill login credentials, expected_ms: 10000}}
  - {{action: click, description: Submit the form, expected_ms: 10000}}
  - {{action: verify, description: The dashboard is there, tool: "*browser_snapshot"}}
  - {{action: screenshot, description: Keep a picture}}
assertions:
  - {{description: Ada is welcomed, step: 4, contains: Welcome Ada}}
  - {{description: The dashboard is shown, step: 4, title: Dashboard}}
health_checks:
  - {{type: page_load, step: 1, title: "Sign in"}}
  - {{type: http, path: /health, contains: fine}}
"""


@pytest.fixture(scope="module")
def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        raise ProgramUnavailable("there is no chromium on PATH; on Debian: apt-get install chromium")
    return found


@pytest.fixture
def address() -> Iterator[str]:
    with site() as url:
        yield url


@pytest.fixture
def held(claude: ClaudeCode, chromium: str, address: str, tmp_path: Path) -> Iterator[World]:
    """Hooks by `holdfast install`, the browser as an MCP server of the project, the scenario in its place."""
    world = World(tmp_path / "holdfast")
    world.home, world.project = claude.home, claude.project
    world.env |= {"HOME": str(claude.home)}
    claude.env |= {name: world.env[name] for name in ("HOLDFAST_STATE", "HOLDFAST_CONFIG", "XDG_RUNTIME_DIR")}
    scenarios = claude.project / "uat" / "scenarios"
    scenarios.mkdir(parents=True)
    (scenarios / "login-flow.yaml").write_text(SCENARIO.format(url=address))
    words = ["--headless", "--isolated", "--no-sandbox", "--executable-path", chromium]
    # The browser opens a socket in its temporary folder, and the name of a socket may not be long.
    short = tempfile.mkdtemp(prefix="hf-")
    server = {"command": str(program("playwright-mcp")), "args": words, "env": {"TMPDIR": short}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"playwright": server}}))
    world.cli("install", "--agent", "claude-code")
    world.start()
    yield world
    world.close()
    shutil.rmtree(short, ignore_errors=True)


def browser(name: str, **fields: Any) -> Turn:
    return call(f"mcp__playwright__browser_{name}", **fields)


def login(url: str, password: str) -> list[Turn]:
    fields = [
        {"name": "User", "type": "textbox", "target": "input[name=user]", "element": "User", "value": "ada"},
        {
            "name": "Password",
            "type": "textbox",
            "target": "input[name=password]",
            "element": "Password",
            "value": password,
        },
    ]
    return [
        browser("navigate", url=f"{url}/auth/login"),
        browser("fill_form", fields=fields),
        browser("click", target="button", element="Sign in"),
        browser("snapshot"),
        browser("take_screenshot"),
        text("the login flow is tested"),
    ]


def record_login(
    claude: ClaudeCode, model: ModelServer, world: World, url: str, password: str, tmp_path: Path
) -> dict[str, Any]:
    """One prompt to the real agent; what Holdfast knows afterwards."""
    model.script(login(url, password))
    before = len(world.json("uat", "list")["runs"])
    done = claude.run(
        "Please test the login flow scenario",
        "--mcp-config",
        str(tmp_path / "mcp.json"),
        "--strict-mcp-config",
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    wait_until(lambda: len(world.json("uat", "list")["runs"]) > before, "a run was recorded")
    run = world.json("uat", "list")["runs"][0]["id"]
    wait_until(lambda: world.json("uat", "show", run)["shots"], "its picture is kept")
    return world.json("uat", "show", run, "--calls")


def run_suite(
    claude: ClaudeCode, model: ModelServer, world: World, url: str, password: str, tmp_path: Path
) -> dict[str, Any]:
    """`holdfast uat run`: the real agent in headless mode, as it lies on a person's PATH."""
    model.script([call("Bash", command="holdfast uat start 'login-flow'"), *login(url, password)])
    words = f"--mcp-config {tmp_path / 'mcp.json'} --strict-mcp-config --permission-mode bypassPermissions"
    env = {**claude.env, **world.env, "PATH": f"{claude.executable.parent}:{world.env['PATH']}"}
    told = world.cli("uat", "run", "smoke", "--yes", "--json", "--agent-args", words, code=1, **env)
    (result,) = json.loads(told.splitlines()[-1])["data"]
    assert (result["scenario"], result["outcome"], result["problem"]) == ("login-flow", "failed", "")
    return world.json("uat", "show", result["run"], "--calls")


def seen_in(chromium: str, page: Path, folder: Path) -> str:
    """The report as the browser shows it."""
    words = [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}", "--dump-dom"]
    done = subprocess.run([*words, page.as_uri()], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def test_a_passing_and_a_failing_login(
    claude: ClaudeCode, model: ModelServer, held: World, address: str, chromium: str, tmp_path: Path
) -> None:
    """Issue 6: the report, opened in that browser, shows both."""
    good = record_login(claude, model, held, address, PASS, tmp_path)
    bad = run_suite(claude, model, held, address, FAIL, tmp_path)

    assert (good["outcome"], good["reason"], good["auto"], good["confidence"]) == ("passed", "last-step", True, 95)
    assert [s["status"] for s in good["plan"]] == ["completed"] * 5
    assert [c["stepNumber"] for c in good["tool_calls"]] == [1, 2, 3, 4, 5]
    assert {c["result"] for c in good["checks"]} == {"success"}
    assert PASS not in json.dumps(good), "passwords are not kept"

    assert bad["outcome"] == "failed"
    assert [a["result"] for a in bad["judged"]] == ["failed", "failed"]
    assert any("login failed" in p["message"] for p in bad["problems"]), "the page's console error is on record"
    assert model.saw("is being recorded", "main"), "the agent was told"

    for run, words in ((good, ("passed", "Ada is welcomed")), (bad, ("failed", "Wrong password"))):
        (path,) = [Path(r["path"]) for r in held.json("uat", "report", run["id"])]
        shown = seen_in(chromium, path, tmp_path / f"profile-{run['outcome']}")
        assert all(word in shown for word in words)
        assert "data:image/png;base64," in shown

    told = held.json("uat", "compare", good["id"], bad["id"])
    assert {a["now"] for a in told["assertions"]} == {"failed"}
    assert 0 < told["screenshots"][0]["share"] < 1
