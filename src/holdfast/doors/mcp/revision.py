"""The stateless revisions of MCP: what each request must carry, and what each result adds."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, NamedTuple

VERSIONS = ("2026-07-28",)
INVALID_PARAMS, HEADER_MISMATCH, UNSUPPORTED_VERSION = -32602, -32020, -32022
HTTP_STATUS = {
    -32700: 400,
    -32600: 400,
    -32601: 404,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    UNSUPPORTED_VERSION: 400,
}
"""HTTP status by JSON-RPC error code; any other code is sent with 200."""
VERSION_HEADER, METHOD_HEADER, NAME_HEADER = b"mcp-protocol-version", b"mcp-method", b"mcp-name"
NAME_PARAMETER = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameter that the header Mcp-Name repeats, by method."""
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
CACHEABLE = frozenset(
    ("server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read")
)
LISTS_FRESH_MS = 300_000


class Rejection(NamedTuple):
    code: int
    message: str
    data: dict[str, Any] | None = None


def is_stateless(params: Mapping[str, Any]) -> bool:
    """Whether a request carries its own protocol version instead of following a handshake."""
    meta = params.get("_meta")
    return isinstance(meta, dict) and VERSION_KEY in meta


def check_request(params: Mapping[str, Any]) -> Rejection | None:
    meta = params.get("_meta")
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if not isinstance(meta, dict) or key not in meta]
    if missing:
        return Rejection(INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}")
    assert isinstance(meta, dict)
    return _check_version(meta[VERSION_KEY])


def _check_version(version: Any) -> Rejection | None:
    if not isinstance(version, str):
        return Rejection(INVALID_PARAMS, f"{VERSION_KEY} is not a string")
    if version in VERSIONS:
        return None
    data = {"supported": list(VERSIONS), "requested": version[:100]}
    return Rejection(UNSUPPORTED_VERSION, "Unsupported protocol version", data)


def check_headers(headers: Mapping[bytes, list[bytes]], method: str, params: Mapping[str, Any]) -> Rejection | None:
    """Over HTTP the headers repeat what the body says, so that proxies can route by them."""
    meta = params.get("_meta")
    version = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
    expected = {VERSION_HEADER: version, METHOD_HEADER: method}
    name = params.get(NAME_PARAMETER.get(method, ""))
    if name is not None:
        expected[NAME_HEADER] = name
    for header, value in expected.items():
        sent = headers.get(header, [])
        if len(sent) != 1 or _decode_header(sent[0]) != value:
            return Rejection(HEADER_MISMATCH, f"the header {header.decode()} does not match the request")
    return None


def _decode_header(value: bytes) -> str | None:
    """Values that are not plain ASCII are sent as `=?base64?…?=`."""
    text = value.decode("latin-1")
    if not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    try:
        return base64.b64decode(text[9:-2], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def complete(method: str, result: dict[str, Any]) -> dict[str, Any]:
    """A result with the fields that stateless revisions require."""
    completed = {**result, "resultType": "complete"}
    if method in CACHEABLE:
        # Resources change with every event; lists of tools and prompts change only with the version.
        completed |= {"ttlMs": 0 if method.startswith("resources/") else LISTS_FRESH_MS, "cacheScope": "private"}
    return completed
