"""The bytes of a settings file. Apart from what understands YAML: a daemon starts without that where there is no file."""

import os
import stat
from pathlib import Path
from typing import Any

MOST_BYTES = 256 * 1024  # a parser in Python takes a third of a second for this much


class Refused(Exception):
    """This file is not read any further."""

    def __init__(self, message: str, mark: Any = None) -> None:
        super().__init__(message)
        self.line = mark.line + 1 if mark else 0
        self.column = mark.column + 1 if mark else 0


def read_file(path: Path) -> bytes | None:
    """None when there is no such file. At most one byte more than is allowed is read, and never from a pipe."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise Refused("not a plain file")
        with open(fd, "rb", closefd=False) as file:
            return file.read(MOST_BYTES + 1)
    finally:
        os.close(fd)
