"""Finds the running web server of a state folder and its address."""

from typing import Any

import msgspec

from holdfast.core.machine import Lease, lease_holder
from holdfast.paths import Paths, write_atomically


def server_lease(paths: Paths) -> Lease:
    return Lease(paths.run / "web.lock")


def running_server(paths: Paths) -> dict[str, Any] | None:
    """{"port", "pid"} of the running one, or None."""
    pid = lease_holder(paths.run / "web.lock")
    try:
        address = msgspec.json.decode((paths.run / "web.json").read_bytes()) if pid else None
    except (OSError, msgspec.DecodeError):
        return None
    return address if isinstance(address, dict) and address.get("pid") == pid else None


def write_address(paths: Paths, port: int) -> None:
    pid = lease_holder(paths.run / "web.lock")
    write_atomically(paths.run / "web.json", msgspec.json.encode({"port": port, "pid": pid}))


def remove_address(paths: Paths) -> None:
    (paths.run / "web.json").unlink(missing_ok=True)
