"""The labelled corpus of secrets, each record as the hook payload it would come in."""

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec

FOLDER = Path(__file__).parents[2] / "corpus"
MARK = "\u27c2"
"""Stands within every secret at rest, so that no scanner takes the file for a leak."""
FILLER = "y = 2\n"
SOME = frozenset("_-=.+/\"'")
HTML = frozenset("<>&='+")


class Record(msgspec.Struct):
    id: str
    kind: str
    context: str
    place: str
    text: str
    group: str = msgspec.field(name="class")
    secret: str | None = None
    forms: list[str] = []
    keep: list[str] = []
    wire: str = ""
    pad: dict[str, int] = {}
    hard: bool = False
    doubtful: bool = False


def records(name: str = "secrets") -> Iterator[Record]:
    decoder = msgspec.json.Decoder(Record)
    for line in (FOLDER / f"{name}.jsonl").read_bytes().replace(MARK.encode(), b"").splitlines():
        record = decoder.decode(line)
        if record.pad:
            record.text = _filler(record.pad["before"]) + record.text + _filler(record.pad["after"])
        yield record


def _filler(length: int) -> str:
    return (FILLER * (length // len(FILLER) + 1))[:length]


def body_of(record: Record) -> bytes:
    """The payload as bytes; `wire` says which of JSON's spellings the text has."""
    plain = json.dumps(_payload(record))
    text = json.dumps(record.text)[1:-1]
    if not record.wire:
        return plain.encode()
    if record.wire == "slash":
        return plain.replace(text, text.replace("/", "\\/")).encode()
    return plain.replace(text, "".join(_spelt(c, record.wire) for c in record.text)).encode()


def _spelt(char: str, wire: str) -> str:
    escaped = wire == "u-all" or char in (SOME if wire == "u-some" else HTML)
    return f"\\u{ord(char):04x}" if escaped else json.dumps(char)[1:-1]


def _payload(record: Record) -> dict[str, object]:
    text, place = record.text, record.place
    base: dict[str, object] = {"session_id": "s-1", "cwd": "/home/ada/shop", "tool_name": "Bash"}
    if place == "prompt":
        return base | {"prompt": text}
    if place == "answer":
        return base | {"last_assistant_message": text}
    if place == "command":
        return base | {"tool_input": {"command": text}}
    if place in ("edit", "write", "path"):
        return base | {"tool_input": {"file_path": text if place == "path" else "a.txt", "new_string": text}}
    if place == "mcp":
        return base | {"tool_input": {"request": {"body": text}}, "tool_response": [{"type": "text", "text": text}]}
    if place == "key":
        return base | {"tool_response": {"seen": {text: 1}}}
    return base | ({"cwd": text} if place == "cwd" else {"tool_response": {"stdout": text, "stderr": ""}})


def strings_of(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from strings_of(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from strings_of(one)
