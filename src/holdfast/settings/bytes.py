"""Reads the bytes of a settings file."""

from pathlib import Path
from typing import Any

from holdfast.paths import NotRegular, open_regular

MOST_BYTES = 256 * 1024  # a parser in Python takes a third of a second for this much


class Refused(Exception):
    """This file is not read further."""

    def __init__(self, message: str, mark: Any = None) -> None:
        super().__init__(message)
        self.line = mark.line + 1 if mark else 0
        self.column = mark.column + 1 if mark else 0


def read_file(path: Path) -> bytes | None:
    """None if there is no such file. Reads at most one byte over the limit, and never from a pipe."""
    try:
        with open(path, "rb", opener=open_regular) as file:
            return file.read(MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except NotRegular:
        raise Refused("not a plain file") from None
