"""A small site of our own: a login that can pass and fail. Loopback only."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs

STYLE = "<style>body{font:20px sans-serif;margin:3rem;background:#eef}form{display:grid;gap:1rem;width:20rem}</style>"
LOGIN = f"""<!doctype html><title>Sign in</title>{STYLE}<h1>Sign in</h1><form method="post" action="/auth/login">
<label>User <input name="user" autofocus></label><label>Password <input name="password" type="password"></label>
<button>Sign in</button></form>"""
WRONG = (
    f'<!doctype html><title>Sign in</title>{STYLE}<h1>Wrong password</h1><script>console.error("login failed")</script>'
)
WELCOME = f"<!doctype html><title>Dashboard</title>{STYLE}<h1>Welcome Ada</h1>"


class _Site(http.server.BaseHTTPRequestHandler):
    pages = {"/auth/login": LOGIN, "/dashboard": WELCOME, "/health": "all fine", "/favicon.ico": ""}

    def do_GET(self) -> None:
        self._answer(200 if self.path in self.pages else 404, self.pages.get(self.path, "not here"))

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers.get("content-length", "0"))).decode())
        good = form.get("user") == ["ada"] and form.get("password") == ["lovelace"]
        self._answer(200 if good else 401, WELCOME if good else WRONG)

    def _answer(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return None


@contextmanager
def site() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
