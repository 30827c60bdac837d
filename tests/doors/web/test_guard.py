"""P8: neither web pages nor other users nor other hosts get through the HTTP door."""

import contextlib
import http.client
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from holdfast.core.errors import HoldfastError
from holdfast.doors.web import server
from holdfast.doors.web.permissions import NoPermission, Permission, Routes
from holdfast.paths import Paths

from .conftest import Door

# P8: every route × everybody who must not use it. What is not refused here is not on the list of routes.

FILLED = {"seq": "1", "endpoint": "stop", "name": "log.note"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def routes(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str, Permission]]:
    return built(tmp_path_factory.mktemp("routes")).listed()


def built(folder: Path) -> Routes:
    paths = Paths(folder / "state").prepare()
    _, web_context, found = server.build_app(paths, 8417)
    web_context.client.close()
    return found


def filled(path: str) -> str:
    return re.sub(r"\{(\w+)(?::path)?\}", lambda found: FILLED.get(found[1], "first"), path)


def each(routes: list[tuple[str, str, Permission]], *only: Permission) -> Iterator[tuple[str, str, Permission]]:
    for method, path, permission in routes:
        if not only or permission in only:
            yield method, filled(path), permission


def refusals(permission: Permission) -> tuple[int, ...]:
    """A link's own route refuses it: 403 for a page, 409 for an answer, 404 for a file that is not for links."""
    return {Permission.LINK: (403,), Permission.ANSWER: (403, 404, 409)}.get(permission, (401,))


def test_there_is_something_to_guard(routes: list):
    assert len(routes) > 30
    assert {permission for _, _, permission in routes} == set(Permission)


def test_no_key(lived_in: Door, routes: list):
    for method, path, permission in each(routes):
        if permission is Permission.HOOK:
            continue  # Whose connection it is says the kernel: tests/doors/web/test_guard.py.
        status, body, _ = lived_in.ask(method, path, b"{}", **JSON)
        assert status in refusals(permission), (method, path)
        assert b"first" not in body


def test_the_wrong_key(lived_in: Door, routes: list):
    name, cookie = lived_in.keys.cookie_name, lived_in.keys.cookie
    wrong = (
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Basic {lived_in.token}"},
        {"Authorization": f"Bearer {lived_in.token}x"},
        {"Cookie": f"{name}={cookie[:-1]}"},
        {"Cookie": f"{name}=; other={cookie}"},
        {"Cookie": f"{name}={lived_in.token}"},
        {"Cookie": f"{name}=é\udcff".encode("utf-8", "surrogateescape").decode("latin-1")},
    )
    for method, path, permission in each(routes):
        for headers in () if permission is Permission.HOOK else wrong:
            status, _, _ = lived_in.ask(method, path, b"{}", **JSON, **headers)
            assert status in refusals(permission), (method, path, headers)


def test_another_host(lived_in: Door, routes: list):
    """DNS rebinding: the key is there, the name is not ours."""
    for method, path, _ in each(routes):
        for host in (
            "evil.example",
            f"evil.example:{lived_in.port}",
            "localhost",
            "localhost:1",
            f"[::1]:{lived_in.port}",
        ):
            status, _, _ = lived_in.ask(method, path, b"{}", **JSON, **lived_in.as_program, Host=host)
            assert status == 421, (method, path, host)


def test_another_page(lived_in: Door, routes: list):
    """With the cookie, as a browser would send it were it not for SameSite; and with the token."""
    pages = (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": f"https://127.0.0.1:{lived_in.port}"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    )
    for method, path, _ in each(routes):
        for page in pages:
            keys = {**lived_in.as_program, **lived_in.as_page, "X-Holdfast-CSRF": lived_in.keys.csrf}
            status, _, _ = lived_in.ask(method, path, b"{}", **{**keys, **JSON, **page})
            assert status == 403, (method, path, page)


def test_a_form(lived_in: Door, routes: list):
    """A form needs no permission of the browser to be sent, so it must get nowhere, whatever else it knows."""
    own = {"Origin": f"http://127.0.0.1:{lived_in.port}", "X-Holdfast-CSRF": lived_in.keys.csrf}
    posts = {path for method, path, _ in each(routes) if method == "POST"}
    for method, path, permission in each(routes):
        from_page = {} if permission in (Permission.HOOK, Permission.TOKEN) else {**lived_in.as_page, **own}
        status, _, _ = lived_in.ask("POST", path, b"a=b", **{**lived_in.as_program, **from_page, **FORM})
        assert status == (415 if method == "POST" or path in posts else 405), (method, path)


def test_a_page_writes_only_with_its_second_word(lived_in: Door, routes: list):
    for method, path, _ in each(routes, Permission.WRITE):
        whole = lived_in.as_writing_page
        for left_out in ("X-Holdfast-CSRF", "Origin", "Cookie"):
            headers = {name: value for name, value in whole.items() if name != left_out}
            assert lived_in.ask(method, path, b"{}", **headers)[0] in (401, 403), (path, left_out)
        for wrong in ("", "0" * 64, lived_in.keys.cookie):
            assert lived_in.ask(method, path, b"{}", **{**whole, "X-Holdfast-CSRF": wrong})[0] == 403, (path, wrong)
        assert lived_in.ask(method, path, b'{"args": {"text": "by a page"}}', **whole)[0] == 200


def test_only_the_token_makes_links_and_ends_it(lived_in: Door, routes: list):
    for method, path, _ in each(routes, Permission.TOKEN):
        page = {name: value for name, value in lived_in.as_writing_page.items() if not name.startswith("Sec-")}
        assert lived_in.ask(method, path, b"{}", **page)[0] == 403, path
        page.pop("Origin")
        assert lived_in.ask(method, path, b"{}", **page)[0] == 401, path


def test_with_the_key_they_answer(lived_in: Door, routes: list):
    for method, path, _ in each(routes, Permission.READ):
        status, _, headers = lived_in.ask(method, path, **lived_in.as_page)
        assert status in (200, 404, 422), (path, status)
        assert headers["content-security-policy"].startswith("default-src 'self'")
        assert (headers["x-content-type-options"], headers["x-frame-options"]) == ("nosniff", "DENY")
        assert "access-control-allow-origin" not in headers


async def nothing() -> str:
    return ""


def test_a_route_without_a_permission_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    found = built(tmp_path)
    found.check()
    found.web.get("/forgotten")(nothing)
    with pytest.raises(NoPermission, match="/forgotten"):
        found.check()

    def careless(routes: Routes, *_: object) -> None:
        routes.web.add_api_route("/open-to-all", nothing)

    monkeypatch.setattr(server.api, "register", careless)
    with pytest.raises(HoldfastError, match="does not declare who may use it: /open-to-all"):
        server.build_app(Paths(tmp_path / "other").prepare(), 8417)


BODY = json.dumps({"session_id": "s"})


STOP = "/api/oak/ci/stop"


def send(door: Door, path: str = STOP, body: str = BODY, method: str = "POST", **headers: str) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection = http.client.HTTPConnection("127.0.0.1", door.port, timeout=20)
    try:
        connection.request(method, path, body, {**JSON, **named})
        return connection.getresponse().status
    finally:
        connection.close()


def test_the_owner_gets_in(door: Door):
    assert send(door) == 200
    assert send(door, Host=f"localhost:{door.port}") == 200


def test_everybody_and_everything_else_does_not(door: Door):
    attempts = {
        "another host, after DNS rebinding": (421, {"Host": "evil.example"}),
        "the right host, the wrong port": (421, {"Host": "localhost:1"}),
        "no port": (421, {"Host": "localhost"}),
        "a web page": (403, {"Origin": "https://evil.example"}),
        "a page of our own address": (403, {"Origin": f"http://localhost:{door.port}"}),
        "a sandboxed page": (403, {"Origin": "null"}),
        "an image in a page": (403, {"Sec_Fetch_Site": "cross-site"}),
        "a form": (415, {"Content_Type": "application/x-www-form-urlencoded"}),
        "plain text, which needs no preflight": (415, {"Content_Type": "text/plain"}),
    }
    for what, (status, headers) in attempts.items():
        assert send(door, **headers) == status, what
    assert send(door, method="GET", body="") == 405
    assert send(door, method="OPTIONS", body="", Origin="https://evil.example") == 403
    assert send(door, path="/api/oak/ci/nothing") == 404
    assert send(door, path="/docs") in (404, 405)
    assert send(door, path="/openapi.json") == 404
    for bad in ("[1]", "{", "", "null", "[" * 100_000):
        assert send(door, body=bad) == 422, bad[:10]
    assert door.world.hooks_seen() == []
    assert send(door) == 200


def test_a_body_has_an_end(door: Door):
    """It may hang up before we are through."""
    with contextlib.suppress(ConnectionError):
        assert send(door, body=json.dumps({"session_id": "s", "x": "y" * (30 << 20)})) == 413
    with contextlib.suppress(ConnectionError), socket.create_connection(("127.0.0.1", door.port), 20) as sock:
        head = f"POST {STOP} HTTP/1.1\r\nHost: localhost:{door.port}\r\nContent-Type: application/json\r\n"
        sock.sendall(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(180):
            sock.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
        assert b" 413 " in sock.recv(100)
    assert door.world.hooks_seen() == []
    assert send(door) == 200


def test_it_listens_on_loopback_only(door: Door):
    ours = [c for c in psutil.net_connections("tcp") if c.status == "LISTEN" and c.laddr.port == door.port]
    assert {c.laddr.ip for c in ours} == {"127.0.0.1"}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_another_user_is_told_nothing(door: Door):
    head = f"POST {STOP} HTTP/1.1\r\nHost: localhost:{door.port}\r\nContent-Type: application/json\r\n"
    request = f"{head}Content-Length: {len(BODY)}\r\n\r\n{BODY}"
    script = "import os,socket,sys\nos.setuid(65534)\ns=socket.socket()\ns.connect(('127.0.0.1',int(sys.argv[1])))\n"
    script += "s.sendall(sys.argv[2].encode())\nprint(s.recv(100).split()[1].decode())\n"
    done = subprocess.run([sys.executable, "-c", script, str(door.port), request], capture_output=True, text=True)
    assert done.stdout.strip() == "401", done.stderr
    assert door.world.hooks_seen() == []
