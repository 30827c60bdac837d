"""The signals by which a project is known, gathered anew each time."""

from collections.abc import Mapping
from typing import Any

from holdfast.core.ports import Doc, Reader, Ref
from holdfast.features.project import activity, everywhere, resolve
from holdfast.features.project.collectors import mapping
from holdfast.features.project.collectors.git_facts import tilde
from holdfast.features.project.model import EVERYWHERE, activity_ref, project_ref
from holdfast.features.project.settings import ProjectSettings


def resolution(
    reader: Reader, root: str, remote: str, settings: ProjectSettings, now: int, override: str = "", cwd: str = ""
) -> dict[str, Any]:
    known = mapping.read(settings.mapping_file)
    doc, doing = reader.state(project_ref(root)) or {}, reader.state(activity_ref(root))
    pwd = resolve.pwd_signal(cwd or root, tilde(cwd or root), known)
    recent = activity.recent_paths(doing, now, resolve.RECENT_MS)
    signals = {
        "pwd": pwd,
        "git": resolve.git_signal(remote, known),
        "recent_files": resolve.recent_signal(recent, root, str(pwd["project"]), known),
        "user_override": resolve.override_signal(override or said_by_user(doc, doing, settings)),
    }
    return resolve.vote(signals, [*known, *everywhere.names(reader.state(EVERYWHERE))])


def said_by_user(doc: Mapping[str, Any], doing: Doc | None, settings: ProjectSettings) -> str:
    """By command, else CLAUDE_PROJECT of a session that is open here, else the settings."""
    sessions = sorted(((doing or {}).get("sessions") or {}).values(), key=lambda one: -one["at"])
    named = next((one["named"] for one in sessions if one.get("named")), "")
    return str(doc.get("override") or named or settings.name)


def folder_name(reader: Reader, root: str, name: str) -> str:
    """Two projects of one name get two folders: the second is told apart by where it lies."""
    known = (reader.state(Ref(EVERYWHERE.kind, EVERYWHERE.key)) or {}).get("projects") or {}
    taken = {one["folder"]: where for where, one in known.items() if one.get("folder")}
    parents = [resolve.safe_name(part) for part in reversed(root.split("/")[:-1]) if part]
    wanted = name
    for parent in parents:
        if taken.get(wanted, root) == root:
            return wanted
        wanted = f"{wanted}-{parent}"[:120]
    return wanted
