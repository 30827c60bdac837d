"""The team's board in a real browser, from a real server process: by a link that works once."""

import zlib
from pathlib import Path
from typing import Any

import msgspec

from holdfast_team.membership import TeamConnection
from holdfast_team.protocol import Batch, Enrolled
from tests.team.conftest import PROJECT, an_event, postgres_url, team_url
from tests.team.processes import TeamHost, code_for

__all__ = ["postgres_url", "team_url"]
HOSTILE = "<img src=x onerror=\"document.title='owned'\">.py"


def _send_work(host: TeamHost, person: str) -> TeamConnection:
    """A machine of that person, with one session that wrote a file of a hostile name and waits."""
    request = {"code": code_for(host, person), "machine": f"machine-of-{person}", "label": f"{person}'s laptop"}
    told = TeamConnection(host.url).request("POST", "/v1/enrol", Enrolled, request)
    connection = TeamConnection(host.url, told.token)
    events = (
        an_event(1, session=person, action="edit", paths=[HOSTILE], branch="main"),
        an_event(2, kind="permission.requested", session=person),
    )
    batch = Batch(stream=1, after=0, upto=2, events=events, projects=(PROJECT,))
    assert connection.send("POST", "/v1/batch", zlib.compress(msgspec.json.encode(batch)))[0] == 200
    return connection


def test_the_board_shows_everybody_and_runs_nothing_of_what_they_wrote(
    team_url: str, tmp_path: Path, browser: Any
) -> None:
    host = TeamHost(team_url, tmp_path)
    host.start()
    try:
        ann, _ = _send_work(host, "ann"), _send_work(host, "ben")
        link = f"{host.url}{ann.request('POST', '/v1/link', dict[str, str])['path']}"
        context = browser.new_context()
        page = context.new_page()
        page.goto(link)
        page.wait_for_selector("h1")
        text = page.inner_text("body")
        assert page.url == f"{host.url}/board" and "You are ann, admin" in text
        assert "ann's laptop" in text and "ben's laptop" in text and text.count("waits for a person") == 2
        assert HOSTILE in text and page.title() == "Team board"
        for width in (400, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, "the page is wider than the screen"
        context.close()
        stranger = browser.new_context().new_page()
        assert stranger.goto(link).status == 401 and stranger.goto(f"{host.url}/board").status == 401
        assert "You are not signed in here" in stranger.inner_text("body")
    finally:
        host.kill()
