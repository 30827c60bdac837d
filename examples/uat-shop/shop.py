"""A small shop to test: login, form, table, a flaky widget, a slow page and an upload. `python shop.py [PORT]`.

Standard library only, loopback only. `POST /reset` forgets what was ordered and how often the widget was loaded.
"""

import http.server
import itertools
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from urllib.parse import parse_qs, urlsplit

LONGEST_DELAY_S = 60
STYLE = """<style>
body{font:17px/1.5 system-ui,sans-serif;margin:0;background:#f4f6fb;color:#182033}
header{background:#24356b;color:#fff;padding:.8rem 2rem;display:flex;gap:1.5rem}header a{color:#cfe0ff}
main{max-width:46rem;margin:2rem auto;background:#fff;padding:1.5rem 2rem;border-radius:10px;box-shadow:0 1px 6px #0002}
form{display:grid;gap:.8rem;max-width:22rem}label{display:grid}input,select,button{font:inherit;padding:.4rem}
button{background:#24356b;color:#fff;border:0;border-radius:6px}table{border-collapse:collapse;width:100%}
td,th{text-align:left;border-bottom:1px solid #ccd;padding:.3rem}.bad{color:#b00020}.good{color:#0a6b2d}
</style>"""
ORDERS = (("1001", "Lamp", "39.90"), ("1002", "Chair", "120.00"), ("1003", "Desk", "310.50"), ("1004", "Rug", "75.25"))


def page(title: str, body: str) -> str:
    links = "".join(
        f'<a href="/{name}">{name}</a>' for name in ("login", "orders", "checkout", "stock", "slow", "upload")
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>{STYLE}</head>'
        f"<body><header><b>Shop</b>{links}</header><main><h1>{title}</h1>{body}</main></body></html>"
    )


LOGIN = page(
    "Sign in",
    '<form method="post"><label>User <input name="user" autocomplete="off"></label><label>Password '
    '<input name="password" type="password"></label><button>Sign in</button></form>',
)
CHECKOUT = page(
    "Checkout",
    '<form method="post"><label>Name <input name="name"></label><label>City <input name="city"></label>'
    '<label>Shipping <select name="shipping"><option value="post">Post</option><option value="express">Express</option>'
    "</select></label><button>Order</button></form>",
)
UPLOAD = page(
    "Upload a picture",
    '<form method="post" enctype="multipart/form-data"><label>Picture <input type="file" name="file"></label>'
    "<button>Upload</button></form>",
)
STOCK = page(
    "Stock",
    '<p id="widget">Loading…</p><button onclick="load()">Reload</button><script>async function load(){const answer='
    'await fetch("/api/stock");const w=document.getElementById("widget");if(answer.ok){w.className="good";'
    'w.textContent="In stock: "+(await answer.json()).count}else{w.className="bad";w.textContent="Stock unavailable";'
    'console.error("stock widget: "+answer.status)}}load()</script>',
)


class Shop(http.server.ThreadingHTTPServer):
    """`loads` counts the calls of the flaky widget: every first of two fails."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.forget()

    def forget(self) -> None:
        self.loads = itertools.count(1)
        self.orders = list(ORDERS)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Shop

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        answers = {
            "/": lambda: self._redirect("/login"),
            "/login": lambda: self._html(LOGIN),
            "/checkout": lambda: self._html(CHECKOUT),
            "/stock": lambda: self._html(STOCK),
            "/upload": lambda: self._html(UPLOAD),
            "/orders": lambda: self._html(page("Orders", self._table())),
            "/slow": lambda: self._slow(parse_qs(parts.query)),
            "/api/stock": self._stock,
            "/health": lambda: self._send(200, "text/plain", b"all fine"),
            "/favicon.ico": lambda: self._send(204, "image/x-icon", b""),
        }
        answers.get(parts.path, lambda: self._html(page("Not found", "<p>There is no such page.</p>"), 404))()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        if self.path == "/reset":
            self.server.forget()
            self._send(204, "text/plain", b"")
        elif self.path == "/upload":
            self._html(page("Uploaded", f'<p class="good">{_file_name(body)}, {len(body)} bytes received</p>'))
        else:
            form = {name: values[0] for name, values in parse_qs(body.decode("utf-8", "replace")).items()}
            self._sign_in(form) if self.path == "/login" else self._order(form)

    def _sign_in(self, form: dict[str, str]) -> None:
        if form.get("user") == "ada" and form.get("password") == "lovelace":
            self._html(page("Dashboard", "<h2>Welcome Ada</h2>"))
            return
        wrong = '<h2 class="bad">Wrong password</h2><script>console.error("login failed")</script>'
        self._html(page("Sign in", wrong), 401)

    def _order(self, form: dict[str, str]) -> None:
        missing = [name for name in ("name", "city") if not form.get(name)]
        if missing:
            self._html(page("Checkout", f'<p class="bad">Missing: {", ".join(missing)}</p>'), 422)
            return
        number = str(1001 + len(self.server.orders))
        self.server.orders.append((number, "Order of " + form["name"], "0.00"))
        self._html(page("Thank you", f'<p class="good">Order {number} goes to {escape(form["city"])}</p>'))

    def _slow(self, query: dict[str, list[str]]) -> None:
        given = query.get("seconds", ["8"])[0]
        time.sleep(min(LONGEST_DELAY_S, int(given) if given.isdecimal() else 8))
        self._html(page("Slow page", "<p>Here at last</p>"))

    def _stock(self) -> None:
        broken = next(self.server.loads) % 2 == 1
        self._send(503 if broken else 200, "application/json", b"{}" if broken else b'{"count": 7}')

    def _table(self) -> str:
        rows = "".join(
            f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in order)}</tr>" for order in self.server.orders
        )
        return (
            f"<table><thead><tr><th>Number</th><th>Article</th><th>Price</th></tr></thead><tbody>{rows}</tbody></table>"
        )

    def _redirect(self, where: str) -> None:
        self.send_response(302)
        self.send_header("location", where)
        self.send_header("content-length", "0")
        self.end_headers()

    def _html(self, text: str, status: int = 200) -> None:
        self._send(status, "text/html; charset=utf-8", text.encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return None


def _file_name(body: bytes) -> str:
    _, found, rest = body[:2_000].partition(b'filename="')
    return escape(rest.partition(b'"')[0].decode("utf-8", "replace")) if found else "nothing"


@contextmanager
def running(port: int = 0) -> Iterator[Shop]:
    shop = Shop(port)
    threading.Thread(target=shop.serve_forever, daemon=True).start()
    try:
        yield shop
    finally:
        shop.shutdown()
        shop.server_close()


if __name__ == "__main__":
    with running(int(sys.argv[1]) if len(sys.argv) > 1 else 8765) as opened:
        print(f"The shop is at {opened.url}. Ctrl-C ends it.", flush=True)
        threading.Event().wait()
