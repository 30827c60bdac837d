"""A loopback server that speaks as much of Notion's API as a task list needs: data sources, pages, filters."""

import json
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DATABASE, SOURCE = "0b0b0b0b-0000-4000-8000-00000000000d", "50505050-0000-4000-8000-00000000000d"


class NotionServer:
    """`pages` is what a person would see in the database. `fail` makes every request end with that status."""

    def __init__(self, token: str = "secret-token") -> None:
        self.token, self.fail = token, 0
        self.pages: dict[str, dict[str, Any]] = {}
        self.columns: dict[str, dict[str, Any]] = {"Task name": {"type": "title", "title": {}}}
        self.requests: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "NotionServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def rows(self) -> dict[str, tuple[str, str, str]]:
        """Holdfast's mark → (title, priority, status)."""
        return {
            self.text(page, "Holdfast"): (
                page["Task name"]["title"][0]["text"]["content"],
                page.get("Priority", {}).get("select", {}).get("name", ""),
                page.get("Status", {}).get("select", {}).get("name", ""),
            )
            for page in self.pages.values()
        }

    @staticmethod
    def text(page: dict[str, Any], name: str) -> str:
        parts = page.get(name, {}).get("rich_text", [])
        return parts[0]["text"]["content"] if parts else ""

    def answer(self, method: str, path: str, body: dict[str, Any], authorised: bool) -> tuple[int, dict[str, Any]]:
        self.requests.append(f"{method} {path}")
        if self.fail:
            return self.fail, {"object": "error", "status": self.fail, "code": "service_unavailable", "message": "no"}
        if not authorised:
            return 401, {"object": "error", "status": 401, "code": "unauthorized", "message": "API token is invalid."}
        if path == f"/v1/databases/{DATABASE}":
            return 200, {"object": "database", "id": DATABASE, "data_sources": [{"id": SOURCE, "name": "Tasks"}]}
        if path.startswith(f"/v1/data_sources/{SOURCE}"):
            return self._source(method, path, body)
        if path.startswith("/v1/pages"):
            return self._page(method, path, body)
        return 404, {"object": "error", "status": 404, "code": "object_not_found", "message": f"no {path}"}

    def _source(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path.endswith("/query"):
            wanted = body["filter"]["rich_text"]["equals"]
            found = [{"id": name} for name, page in self.pages.items() if self.text(page, "Holdfast") == wanted]
            return 200, {"object": "list", "results": found[: body.get("page_size", 100)], "has_more": False}
        if method == "PATCH":
            for name, shape in body["properties"].items():
                self.columns[name] = {"type": next(iter(shape)), **shape}
        return 200, {"object": "data_source", "id": SOURCE, "properties": self.columns}

    def _page(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        unknown = [name for name in body["properties"] if name not in self.columns]
        if unknown:
            message = f"{unknown[0]} is not a property that exists."
            return 400, {"object": "error", "status": 400, "code": "validation_error", "message": message}
        if method == "POST":
            name = str(uuid.uuid4())
            self.pages[name] = dict(body["properties"])
            return 200, {"object": "page", "id": name}
        name = path.rpartition("/")[2]
        self.pages[name] |= body["properties"]
        return 200, {"object": "page", "id": name}

    def _handler(server: "NotionServer") -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def _do(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                authorised = self.headers.get("Authorization") == f"Bearer {server.token}"
                status, told = server.answer(self.command, self.path, json.loads(body or b"{}"), authorised)
                text = json.dumps(told).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_PATCH = _do  # noqa: N815

            def log_message(self, *_: object) -> None:
                return None

        return Handler
