"""What is wrong with Holdfast, in lines, whether its daemon runs or not."""

from typing import Any

from holdfast import client
from holdfast.core.errors import DaemonUnreachable, HoldfastError
from holdfast.core.text import shorten_line, strip_controls
from holdfast.core.times import time_ago


def current_troubles() -> list[str]:
    try:
        if client.running_pid():
            return trouble_lines(client.ask_daemon("status"))
    except DaemonUnreachable:
        pass
    obstacle = daemon_obstacle()
    return [obstacle] if obstacle else []


def trouble_lines(answer: dict[str, Any]) -> list[str]:
    """Of the daemon's status."""
    return [_clean(one["line"]) for one in answer.get("troubles", ())]


def daemon_obstacle() -> str:
    """Why no daemon can start, and what that means; empty if one can, or nothing was ever stored."""
    from holdfast.app import database_path, open_settings
    from holdfast.daemon.failures import failing_since
    from holdfast.daemon.obstacles import find_obstacle

    paths = client.state_paths()
    if not paths.state.is_symlink() and not paths.state.exists():
        return ""
    reason = find_obstacle(paths, database_path(paths, open_settings()))
    if not reason and paths.failed.exists():
        # The cause of the last failure may be gone.
        try:
            client.start_daemon()
        except HoldfastError as error:
            reason = error.problem
    if not reason:
        return ""
    since = failing_since(paths)
    when = f" (since {time_ago(since)})" if since else ""
    return f"not running and cannot start: {_clean(reason)}{when}; hooks are spooled; gates are not asked"


def _clean(text: str) -> str:
    return shorten_line(strip_controls(text), 400)
