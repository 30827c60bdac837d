"""Lighthouse on the main pages, and axe on what stands alone: an exported session, a UAT report, pages that are not there."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser import looks
from tests.browser.harness import CHROMIUM, FLAGS, Demo
from tests.browser.places import address
from tests.real.programs import ProgramUnavailable, program

MAIN = ("now", "sessions", "session", "activity", "cost", "state", "gates", "tasks", "search", "health")
CATEGORIES = ("accessibility", "best-practices")
LEAST = 0.95


@pytest.mark.parametrize("name", MAIN)
def test_lighthouse_is_content(name: str, demo: Demo, key: Any, tmp_path: Path) -> None:
    try:
        lighthouse = program("lighthouse")
    except ProgramUnavailable as reason:
        pytest.skip(str(reason))
    cookie = "; ".join(f"{one['name']}={one['value']}" for one in key["cookies"])
    headers, told = tmp_path / "headers.json", tmp_path / "told.json"
    headers.write_text(json.dumps({"Cookie": cookie}))
    done = subprocess.run(
        [lighthouse, demo.address + address(name, demo), "--quiet", f"--only-categories={','.join(CATEGORIES)}",
         f"--extra-headers={headers}", "--output=json", f"--output-path={told}", "--no-enable-error-reporting",
         f"--chrome-flags=--headless=new {' '.join(FLAGS)}", "--preset=desktop"],
        env={**os.environ, "CHROME_PATH": CHROMIUM}, capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    assert told.exists(), done.stderr
    report = json.loads(told.read_text())
    assert report["finalDisplayedUrl"].endswith(address(name, demo)), "the page itself, not the one that asks for a key"
    scores = {one: report["categories"][one]["score"] for one in CATEGORIES}
    weak = [f"{id_}: {audit['title']}" for id_, audit in report["audits"].items() if audit.get("score") == 0]
    assert min(scores.values()) >= LEAST, (scores, weak)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("what", ["export", "uat", "nowhere", "no-session"])
def test_axe_finds_nothing_in_what_stands_alone(
    what: str, theme: str, open_page: Callable[..., Any], demo: Demo, tmp_path: Path
) -> None:
    words = {
        "export": ("session", "export", address("session", demo).removeprefix("/session/"), "--format", "html"),
        "uat": ("uat", "report", address("run", demo).removeprefix("/uat/").partition("?")[0], "--out", "-"),
    }.get(what)
    page = open_page(color_scheme=theme, viewport={"width": 390, "height": 844})
    if words:
        file = tmp_path / "alone.html"
        file.write_text(demo.cli(*words))
        page.goto(file.as_uri())
    else:
        missing = {"nowhere": "/nowhere", "no-session": "/session/nobody"}[what]
        page.set_content(page.request.get(missing, headers={"accept": "text/html"}).text())
    assert looks.violations(page) == []
    assert looks.too_wide(page) == []
