"""Who is at the other end of a loopback connection? The kernel knows: only the owner is let in (P8)."""

import os
import socket
from pathlib import Path

TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
LOCAL, REMOTE, UID = 1, 2, 7


def is_owner(client: tuple[str, int], server_port: int) -> bool | None:
    """None where the kernel does not say (no /proc): then a token decides."""
    uid = owner_of(client, server_port)
    return None if uid is None else uid == os.geteuid()


def owner_of(client: tuple[str, int], server_port: int) -> int | None:
    """The user whose socket this is, by its own address and the port it talks to."""
    wanted = _address(*client)
    for table in TABLES:
        try:
            lines = Path(table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            if fields[LOCAL].endswith(wanted) and fields[REMOTE].endswith(f":{server_port:04X}"):
                return int(fields[UID])
    return None


def _address(host: str, port: int) -> str:
    """As /proc writes it: the bytes of an IPv4 address in the machine's order (also at the end of a mapped one)."""
    packed = socket.inet_aton(host)
    return f"{int.from_bytes(packed, 'little'):08X}:{port:04X}"
