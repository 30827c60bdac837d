"""P8: neither web pages nor other users nor other hosts get through the HTTP door."""

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys

import psutil
import pytest

from .conftest import Door

BODY = json.dumps({"session_id": "s"})
JSON = {"Content-Type": "application/json"}


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
