"""Which project is this?"""

# Signals vote with their weight; confidence is the share of the vote.

import fnmatch
import os
import re
from collections.abc import Iterable, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

import msgspec

from holdfast.core.kinds.project_events import Resolution, Signal
from holdfast.core.ports import Reader
from holdfast.features.project.jobs.git_status import tilde_path
from holdfast.features.project.settings import ProjectSettings
from holdfast.features.project.state import ACTIVITY, ALL, GLOBAL, PROJECT, Activity, Project, project_key
from holdfast.features.project.state.habits import recent_paths

# What each signal is worth; the shares of the vote are made from these.
WEIGHTS = {"pwd": 0.9, "git": 0.7, "recent_files": 0.6, "user_override": 1.0}
METHOD = "continuous_semantic"
DOUBT = 0.05
"""The share kept for projects we know of and that no signal names: being sure of it would be too much."""
RECENT_MS = 10 * 60_000
MAX_ALTERNATIVES = 5
MAX_MAPPING_BYTES = 256 * 1024
MAX_MAPPED = 500

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class MappedProject(msgspec.Struct, frozen=True):
    """By what a project is known in ~/.claude/project_mapping.yml."""

    paths: list[str] = []
    remotes: list[str] = []


ProjectMapping = Mapping[str, MappedProject]


def resolve_project(
    reader: Reader, root: str, remote: str, settings: ProjectSettings, now: int, override: str = "", cwd: str = ""
) -> Resolution:
    """By all signals of this moment."""
    mapping = read_mapping(settings.mapping_file)
    doc, doing = PROJECT.load(reader, project_key(root)), ACTIVITY.load(reader, project_key(root))
    pwd = pwd_signal(cwd or root, tilde_path(cwd or root), mapping)
    signals = {
        "pwd": pwd,
        "git": git_signal(remote, mapping),
        "recent_files": recent_signal(recent_paths(doing, now, RECENT_MS), root, pwd.project, mapping),
        "user_override": override_signal(override or _named_by_user(doc, doing, settings)),
    }
    known_projects = GLOBAL.load(reader, ALL)
    names = sorted({one.name for one in known_projects.projects.values() if one.name}) if known_projects else []
    return vote_on_project(signals, [*mapping, *names])


def _named_by_user(doc: Project | None, doing: Activity | None, settings: ProjectSettings) -> str:
    """By command, else CLAUDE_PROJECT of a session that is open here, else the settings."""
    sessions = sorted(doing.sessions.values(), key=lambda one: -one.at) if doing else []
    named = next((one.project_name for one in sessions if one.project_name), "")
    return (doc.override if doc else "") or named or settings.name


def folder_name(reader: Reader, root: str, name: str) -> str:
    """Two projects of one name get two folders: the second has its parent folder in the name."""
    known_projects = GLOBAL.load(reader, ALL)
    taken = (
        {one.folder: where for where, one in known_projects.projects.items() if one.folder} if known_projects else {}
    )
    parents = [safe_name(part) for part in reversed(root.split("/")[:-1]) if part]
    candidate = name
    for parent in parents:
        if taken.get(candidate, root) == root:
            return candidate
        # One folder further up with each try.
        candidate = f"{candidate}-{parent}"[:120]
    return candidate


# ── signals ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def pwd_signal(folder: str, shown: str, mapping: ProjectMapping) -> Signal:
    name = named_by_path(folder, mapping) or safe_name(folder.rstrip("/").rpartition("/")[2])
    return _make_signal("pwd", name, f"Working directory: {shown}")


def git_signal(remote: str, mapping: ProjectMapping) -> Signal:
    """`git@host:someone/name.git` → `name`, or what the mapping says of it."""
    short = remote_name(remote)
    if not short:
        return _make_signal("git", "", "No git remote")
    return _make_signal("git", named_by_remote(remote, mapping) or safe_name(short), f"Git remote: {short}")


def recent_signal(paths: Iterable[str], root: str, name_of_root: str, mapping: ProjectMapping) -> Signal:
    """Files changed within ten minutes: the project most of them belong to."""
    listed = list(paths)
    if not listed:
        return _make_signal("recent_files", "", "No file was changed in the last 10 minutes")
    votes: dict[str, list[str]] = {}
    for path in listed:
        inside = path == root or path.startswith(f"{root}/")
        name = named_by_path(path, mapping) or (name_of_root if inside else safe_name(_folder_of(path)))
        votes.setdefault(name, []).append(path)
    name, mine = max(votes.items(), key=lambda vote: len(vote[1]))
    folder = _common_folder([p.removeprefix(f"{root}/") for p in mine])
    count = f"{len(mine)} file{'' if len(mine) == 1 else 's'}"
    return _make_signal("recent_files", name, f"Recent activity: {count} in {folder}")


def override_signal(name: str, reason: str = "Explicit user override") -> Signal:
    return _make_signal("user_override", safe_name(name) if name else "", reason if name else "No explicit override")


def _make_signal(kind: str, name: str, reason: str) -> Signal:
    return Signal(project=name, confidence=WEIGHTS[kind] if name else 0.0, reason=reason)


def vote_on_project(signals: Mapping[str, Signal], others: Iterable[str] = ()) -> Resolution:
    """`others`: projects we know of. An override is a person's word: it wins, and the rest are alternatives."""
    votes: dict[str, float] = {}
    for signal in signals.values():
        if signal.project:
            votes[signal.project] = votes.get(signal.project, 0.0) + signal.confidence
    unnamed = [name for name in dict.fromkeys(others) if name not in votes][:MAX_ALTERNATIVES]
    shares = _vote_shares(votes, unnamed)
    override = signals["user_override"].project if "user_override" in signals else ""
    winner = override or (max(votes, key=votes.__getitem__) if votes else "unknown")
    return Resolution(
        project=winner,
        confidence=1.0 if override else shares.get(winner, 0.0),
        method=METHOD,
        signals=dict(signals),
        alternatives=_alternative_projects(shares, winner, signals),
    )


def _vote_shares(votes: Mapping[str, float], unnamed: list[str]) -> dict[str, float]:
    total = sum(votes.values())
    if not total:
        return {}
    doubt = DOUBT if unnamed else 0.0
    shares = {name: (1 - doubt) * weight / total for name, weight in votes.items()}
    shares |= {name: doubt / len(unnamed) for name in unnamed}
    return {name: round(share, 2) for name, share in shares.items()}


def _alternative_projects(shares: Mapping[str, float], winner: str, signals: Mapping[str, Signal]) -> list[Signal]:
    rest = sorted(((n, s) for n, s in shares.items() if n != winner and s > 0), key=lambda pair: (-pair[1], pair[0]))
    made = []
    for name, share in rest[:MAX_ALTERNATIVES]:
        reasons = "; ".join(signal.reason for signal in signals.values() if signal.project == name)
        made.append(Signal(project=name, confidence=share, reason=reasons or f"No recent {name}-related activity"))
    return made


def named_by_path(path: str, mapping: ProjectMapping) -> str:
    """The project whose pattern fits most exactly: a folder above it, a piece of the path, or a glob."""
    # The longest pattern is the most exact one.
    fits = [(len(p), name) for name, project in mapping.items() for p in project.paths if _path_fits(path, p)]
    return max(fits)[1] if fits else ""


def _path_fits(path: str, pattern: str) -> bool:
    if any(c in pattern for c in "*?["):
        return fnmatch.fnmatchcase(path, pattern) or fnmatch.fnmatchcase(path, f"{pattern}/*")
    if pattern.startswith("/"):
        return path == pattern.rstrip("/") or path.startswith(f"{pattern.rstrip('/')}/")
    return f"/{pattern.strip('/')}/" in f"{path}/"


def named_by_remote(remote: str, mapping: ProjectMapping) -> str:
    return next((name for name, project in mapping.items() if any(part in remote for part in project.remotes)), "")


def remote_name(url: str) -> str:
    # `host:someone/name` and `host/someone/name` are the same.
    return url.rstrip("/").removesuffix(".git").replace(":", "/").rpartition("/")[2][:100]


def safe_name(name: str) -> str:
    """A name that can be a folder's: never empty, never `..`, never hidden."""
    return _UNSAFE.sub("-", name).strip("-.")[:80] or "unnamed"


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0].rpartition("/")[2] or "unnamed"


def _common_folder(paths: list[str]) -> str:
    """The folder that all of them are in; of relative paths only its first part."""
    folders = [path.split("/")[:-1] for path in paths]
    levels = zip(*folders, strict=False)
    common = [level[0] for level in takewhile(lambda level: len(set(level)) == 1, levels)]
    # An absolute path begins with an empty part.
    return ("/".join(common[:1] if common[0] else common) + "/") if common else "./"


# ── the mapping file ─────────────────────────────────────────────────────────────────────────────────────────────────


def read_mapping(path: str) -> dict[str, MappedProject]:
    """`projects: {name: {paths: […], remotes: […]}}`, or shorter `name: […paths]`. A file that is wrong is as none."""
    try:
        file = Path(path).expanduser()
        content = file.read_bytes() if file.is_file() and file.stat().st_size <= MAX_MAPPING_BYTES else b""
    except (OSError, ValueError, RuntimeError):
        return {}
    loaded = _load_yaml(content) if content else None
    projects = loaded.get("projects", loaded) if isinstance(loaded, dict) else {}
    listed = list(projects.items())[:MAX_MAPPED] if isinstance(projects, dict) else []
    return {
        str(name): _mapped_project(value if isinstance(value, dict) else {"paths": value}) for name, value in listed
    }


def _load_yaml(content: bytes) -> Any:
    from ruamel.yaml import YAML  # Here, because a daemon's start should not wait for it.
    from ruamel.yaml.error import YAMLError

    try:
        return YAML(typ="safe", pure=True).load(content)
    except (YAMLError, ValueError, RecursionError):
        return None


def _mapped_project(value: Mapping[str, Any]) -> MappedProject:
    paths = [os.path.expanduser(text) for text in _text_list(value.get("paths"))]  # noqa: PTH111 - may be a pattern
    return MappedProject(paths, _text_list(value.get("remotes")))


def _text_list(value: Any) -> list[str]:
    listed = [value] if isinstance(value, str) else value
    return [text for text in listed if isinstance(text, str) and text] if isinstance(listed, list) else []
