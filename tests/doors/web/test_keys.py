"""How a browser gets in: `holdfast dashboard` prints a link that works once and becomes a cookie."""

import asyncio
import contextlib
import json
import socket
import time
from urllib.parse import urlsplit

import pytest
import uvicorn

from holdfast.doors.web import keys as keys_of
from holdfast.doors.web import server
from holdfast.doors.web.keys import Keys
from holdfast.doors.web.running import running_server
from holdfast.paths import Paths
from tests.doors.web.conftest import Door, free_port
from tests.kit import World, alive, awaited, wait_until


@pytest.fixture
def dashboard(world: World):
    """Whatever a test starts is gone afterwards."""
    pytest.importorskip("jinja2")
    yield lambda *words: json.loads(
        world.cli("dashboard", "--no-open", "--json", "--port", str(free_port()), *words).splitlines()[-1]
    )["data"]
    world.cli("dashboard", "--stop")


def door_of(world: World, told: dict) -> Door:
    return Door(world, urlsplit(told["address"]).port)


def path_of(link: str) -> str:
    parts = urlsplit(link)
    return f"{parts.path}?{parts.query}"


def test_the_link_works_once(world: World, dashboard):
    told = dashboard()
    door = door_of(world, told)
    status, body, headers = door.ask("GET", path_of(told["link"]), Accept="text/html")
    assert status == 200
    assert b"url=/" in body
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Path=/" in cookie
    given = cookie.partition(";")[0]
    assert door.ask("GET", "/", Cookie=given)[0] == 200
    again, body, headers = door.ask("GET", path_of(told["link"]))
    assert (again, "set-cookie" in headers) == (403, False)
    assert b"holdfast dashboard" in body


def test_one_server_many_links(world: World, dashboard):
    first, second = dashboard(), dashboard()
    assert first["address"] == second["address"]
    assert first["link"] != second["link"]
    running = running_server(world.paths)
    assert alive(running["pid"])
    world.cli("dashboard", "--stop")
    assert running_server(world.paths) is None
    wait_until(lambda: not alive(running["pid"]), "it has ended")
    assert "No dashboard was running" in world.cli("dashboard", "--stop")


def test_a_port_in_use_is_no_reason_to_fail(world: World, dashboard):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        told = dashboard("--port", str(port))
        assert urlsplit(told["address"]).port != port
        assert door_of(world, told).page("/")


def test_two_do_not_run_at_once(world: World, dashboard):
    dashboard()
    assert "one is running already" in world.cli("serve", "--port", str(free_port()), code=1)


@pytest.mark.parametrize("becomes", ["gone", "another", "a link"])
def test_it_ends_when_its_state_folder_is_another(tmp_path, monkeypatch: pytest.MonkeyPatch, becomes: str):
    monkeypatch.setattr(server, "CHECK_S", 0.01)
    paths = Paths(tmp_path / "state").prepare()
    web, web_context, _ = server.build_app(paths, 8417)
    running = server.Server(uvicorn.Config(web), web_context)

    async def look() -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(running._watch_idleness(), 0.3)
        return running.should_exit

    assert not awaited(look())
    paths.state.rename(tmp_path / "moved")
    if becomes == "another":
        paths.prepare()
    if becomes == "a link":
        paths.state.mkdir()
        paths.run.symlink_to(tmp_path / "moved" / "run")
    assert awaited(look())
    web_context.client.close()


def test_it_ends_when_nobody_looks(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server, "CHECK_S", 0.01)
    web, web_context, _ = server.build_app(Paths(tmp_path / "state").prepare(), 8417)
    running = server.Server(uvicorn.Config(web), web_context)

    async def left_after(idle_s: float) -> bool:
        web_context.last_seen = time.monotonic() - idle_s
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(running._watch_idleness(), 0.3)
        return running.should_exit

    web_context.live.viewers = 1
    assert not awaited(left_after(7200))
    web_context.live.viewers = 0
    assert not awaited(left_after(1800))
    assert awaited(left_after(3601))
    web_context.client.close()


def test_it_ends_when_its_folder_is_thrown_away(world: World, dashboard):
    dashboard()
    pid = running_server(world.paths)["pid"]
    world.kill()
    world.paths.run.rename(world.root / "elsewhere")
    wait_until(lambda: not alive(pid), "it has ended")


def test_what_is_secret_is_private(world: World, dashboard):
    dashboard()
    for name in ("http.token", "web.json", "web.lock"):
        assert (world.paths.run / name).stat().st_mode & 0o077 == 0, name


def test_links_grow_old_and_are_few(monkeypatch: pytest.MonkeyPatch):
    now = [100.0]
    monkeypatch.setattr(keys_of.time, "monotonic", lambda: now[0])
    keys = Keys("secret", 1)
    once = keys.new_link()
    assert not keys.redeem("")
    assert not keys.redeem(once[:-1])
    now[0] += keys_of.LINK_LIVES_S + 1
    assert not keys.redeem(once)
    many = [keys.new_link() for _ in range(keys_of.MOST_LINKS + 5)]
    assert not keys.redeem(many[0])
    assert keys.redeem(many[-1])
    assert not keys.redeem(many[-1])


def test_each_port_has_its_own_words():
    one, other = Keys("secret", 1), Keys("secret", 2)
    assert len({one.cookie, other.cookie, one.csrf, other.csrf, one.token}) == 5
    assert one.cookie_name != other.cookie_name
