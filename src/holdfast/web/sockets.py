"""How this process reaches the daemon: many threads at once, so never by changing the working directory."""

import os
import socket
from pathlib import Path

LONGEST_ADDRESS = 100
"""The address of a socket may not be longer than 108 bytes, a path may."""


def connect(sock: socket.socket, place: Path) -> None:
    """Where the path is too long, its folder is named by number."""
    if len(os.fsencode(str(place))) < LONGEST_ADDRESS:
        sock.connect(str(place))
        return
    folder = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sock.connect(f"/proc/self/fd/{folder}/{place.name}")
    finally:
        os.close(folder)
