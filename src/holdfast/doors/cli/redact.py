"""`holdfast data redact`: prints a file or standard input without its secrets."""

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from holdfast.analysis.redact import Redactor, current_redactor
from holdfast.core.errors import CommandRefused

STDIN = "-"


class TextLine(msgspec.Struct):
    text: str = ""


class Removed(msgspec.Struct):
    kind: str


class CleanLine(msgspec.Struct):
    text: str
    removed: list[Removed]


def redact(
    file: Annotated[str, typer.Argument(help="A file, or - for the standard input.")] = STDIN,
    json: Annotated[bool, typer.Option("--json", help='Lines {"text"} in, {"text", "removed"} out.')] = False,
) -> None:
    """Print a text without its secrets, and what was removed on standard error."""
    content = _read_input(file)
    redactor = _configured_redactor()
    if json:
        _redact_lines(content, redactor)
        return
    body, findings = redactor.redact_body(content)
    sys.stdout.buffer.write(body)
    sys.stdout.flush()
    for kind, count in sorted(Counter(finding.kind for finding in findings).items()):
        print(f"removed {count} × {kind}", file=sys.stderr)


def _redact_lines(content: bytes, redactor: Redactor) -> None:
    decoder, encoder = msgspec.json.Decoder(TextLine), msgspec.json.Encoder()
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            text = decoder.decode(line).text
        except msgspec.DecodeError as error:
            raise CommandRefused(f'line {number} is no JSON object with a "text": {error}') from error
        clean, findings = redactor.redact_text(text)
        sys.stdout.buffer.write(encoder.encode(CleanLine(clean, [Removed(f.kind) for f in findings])) + b"\n")
    sys.stdout.flush()


def _read_input(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
    except OSError as error:
        raise CommandRefused(f"{file} cannot be read: {error.strerror or error}") from error


def _configured_redactor() -> Redactor:
    from holdfast.app import open_settings

    # Reading the settings installs the person's own patterns.
    open_settings()
    return current_redactor()
