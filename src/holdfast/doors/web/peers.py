"""Which process asks over loopback: an agent must not answer its own question through a page."""

from pathlib import Path

from holdfast.core.errors import CommandRefused
from holdfast.doors.loopback_guard import connection_fields
from holdfast.doors.web.view_client import ViewClient

INODE = 9


def refuse_agents(client: ViewClient, peer: tuple[str, int] | None, port: int) -> None:
    """Refuse a caller that runs below an agent. A process that cannot be found is another user's, such as a proxy."""
    pid = find_process(peer, port) if peer else 0
    if pid and client.app.call("attention.list", {}, client.reader(), caller=pid).who.is_agent:
        raise CommandRefused("answering an agent's question is a person's to do", fix="Use a browser of your own.")


def find_process(peer: tuple[str, int], port: int) -> int:
    """0 if there is none that we can see."""
    fields = connection_fields(peer, port)
    if not fields:
        return 0
    target = f"socket:[{fields[INODE]}]"
    for folder in Path("/proc").glob("[0-9]*/fd"):
        try:
            if any(str(one.readlink()) == target for one in folder.iterdir()):
                return int(folder.parent.name)
        except OSError:
            continue
    return 0
