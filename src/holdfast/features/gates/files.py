"""Files for older scripts: ~/.claude/sessions.json and .git/requirements/<branch>.json (S2-1, S2-18)."""

import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.core.feature import File
from holdfast.core.kinds import JsonObject
from holdfast.core.ports import Doc, Ref
from holdfast.features.gates.events import RULES
from holdfast.features.gates.rules.in_force import marker_path
from holdfast.features.gates.state.branches import BranchState, Entry, LiveSession, LiveSessions, RequirementEntries

if TYPE_CHECKING:
    from holdfast.features.gates.settings import GateSettings

VERSION = "1.0"
WRITER = "holdfast"
FOLDER = "requirements"
_UNSAFE = re.compile(r"[^\w-]")


def files(ref: Ref, doc: Doc, settings: "GateSettings | None") -> Iterable[File]:
    # `any_in_force` and the hook clients look for this one: it is ours, and no setting keeps it from being written.
    if ref.kind == RULES:
        return (File(marker_path(), b"Requirements are in force.\n"),)
    if settings is not None and not settings.files:
        return ()
    if isinstance(doc, LiveSessions):
        return _json_file(Path.home() / ".claude" / "sessions.json", registry_file(doc))
    return _branch_file(doc) if isinstance(doc, BranchState) and doc.repo else ()


def registry_file(doc: LiveSessions) -> JsonObject:
    return {
        "version": VERSION,
        "writer": WRITER,
        "sessions": {sid: _live_entry(one) for sid, one in doc.sessions.items()},
    }


def _live_entry(one: LiveSession) -> JsonObject:
    return {
        "pid": one.pid, "project_dir": one.project, "branch": one.branch, "agent": one.agent,
        "started_at": one.started // 1000, "last_active": one.active // 1000,
    }  # fmt: skip


def _branch_file(doc: BranchState) -> Iterable[File]:
    repo = Path(doc.repo)
    folder = repo / FOLDER
    if folder.is_symlink() or not (repo / "objects").is_dir():
        return ()  # Not a git directory, or one made to send us elsewhere.
    path = folder / file_name(folder, doc.branch)
    return (File(path, None),) if doc.status == "pruned" else _json_file(path, branch_file(doc))


def _json_file(path: Path, content: JsonObject) -> Iterable[File]:
    """A file of another tool is set aside, not lost (P7)."""
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    return (File(path, text.encode("utf-8", "replace"), ours=_is_ours),)


def _is_ours(content: bytes) -> bool:
    return _parse_json(content).get("writer") == WRITER


def file_name(folder: Path, branch: str) -> str:
    """`feature/test` is `feature-test.json`; if that file is another branch's, a suffix tells them apart (D4)."""
    # Shortened, because file names are limited to 255 bytes.
    plain = _UNSAFE.sub("_", branch.replace("/", "-"))[:150] or "detached"
    owner = _file_branch(folder / f"{plain}.json")
    if owner is None or owner == branch:
        return f"{plain}.json"
    return f"{plain}-{hashlib.sha256(branch.encode()).hexdigest()[:8]}.json"


def _file_branch(path: Path) -> str | None:
    """The branch a file is about, if known."""
    branch = (_read_json(path) or {}).get("branch")
    return branch if isinstance(branch, str) else None


def _read_json(path: Path) -> JsonObject | None:
    """None if the file is missing; {} if it cannot be read."""
    try:
        return _parse_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError:
        return {}


def _parse_json(content: bytes) -> JsonObject:
    try:
        # In bytes: another tool may have written anything here.
        value = json.loads(content[: 4 << 20])
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def branch_file(doc: BranchState) -> JsonObject:
    requirements = {name: _requirement_fields(entries) for name, entries in sorted(doc.requirements.items())}
    return {
        "version": VERSION, "writer": WRITER, "branch": doc.branch, "project": doc.project,
        "created_at": doc.created // 1000, "updated_at": doc.at // 1000, "requirements": requirements,
    }  # fmt: skip


def _requirement_fields(entries: RequirementEntries) -> JsonObject:
    shared = _entry_fields(entries.everyone) if entries.everyone else {}
    sessions = {sid: _entry_fields(entry) for sid, entry in entries.sessions.items()}
    return {"scope": entries.scope, **shared, "sessions": sessions}


def _entry_fields(entry: Entry) -> JsonObject:
    shown: JsonObject = {"satisfied": True, "satisfied_at": entry.at // 1000, "satisfied_by": entry.by}
    if entry.until:
        shown["expires_at"] = entry.until // 1000
    if entry.approved:
        shown["approved"] = True
    return {**shown, "metadata": entry.metadata}
