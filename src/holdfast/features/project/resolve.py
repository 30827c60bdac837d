"""Which project is this? Signals vote with their weight; confidence is the share of the vote. Pure."""

import fnmatch
import re
from collections.abc import Iterable, Mapping
from typing import Any

Signal = dict[str, Any]
WEIGHTS = {"pwd": 0.9, "git": 0.7, "recent_files": 0.6, "user_override": 1.0}
METHOD = "continuous_semantic"
DOUBT = 0.05
"""The share kept for projects we know of and that no signal names: being sure of it would be too much."""
RECENT_MS = 10 * 60_000
MOST_ALTERNATIVES = 5

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")

Mapping_ = Mapping[str, Mapping[str, Iterable[str]]]
"""Project → `paths` and `remotes` by which it is known (~/.claude/project_mapping.yml)."""


def pwd_signal(folder: str, shown: str, known: Mapping_) -> Signal:
    name = named_by_path(folder, known) or safe_name(folder.rstrip("/").rpartition("/")[2])
    return _signal("pwd", name, f"Working directory: {shown}")


def git_signal(remote: str, known: Mapping_) -> Signal:
    """`git@host:someone/name.git` → `name`, or what the mapping says of it."""
    short = remote_name(remote)
    if not short:
        return _signal("git", None, "No git remote")
    return _signal("git", named_by_remote(remote, known) or safe_name(short), f"Git remote: {short}")


def recent_signal(paths: Iterable[str], root: str, name_of_root: str, known: Mapping_) -> Signal:
    """Files changed within ten minutes: the project most of them belong to."""
    listed = list(paths)
    if not listed:
        return _signal("recent_files", None, "No file was changed in the last 10 minutes")
    votes: dict[str, list[str]] = {}
    for path in listed:
        inside = path == root or path.startswith(f"{root}/")
        name = named_by_path(path, known) or (name_of_root if inside else safe_name(_folder_of(path)))
        votes.setdefault(name, []).append(path)
    name, mine = max(votes.items(), key=lambda vote: len(vote[1]))
    folder = _common_folder([p.removeprefix(f"{root}/") for p in mine])
    count = f"{len(mine)} file{'' if len(mine) == 1 else 's'}"
    return _signal("recent_files", name, f"Recent activity: {count} in {folder}")


def override_signal(name: str, reason: str = "Explicit user override") -> Signal:
    return _signal("user_override", safe_name(name) if name else None, reason if name else "No explicit override")


def _signal(kind: str, name: str | None, reason: str) -> Signal:
    return {"project": name or None, "confidence": WEIGHTS[kind] if name else 0.0, "reason": reason}


def vote(signals: Mapping[str, Signal], others: Iterable[str] = ()) -> dict[str, Any]:
    """`others`: projects we know of. An override is a person's word: it wins, and the rest are alternatives."""
    votes: dict[str, float] = {}
    for signal in signals.values():
        if signal["project"]:
            votes[signal["project"]] = votes.get(signal["project"], 0.0) + signal["confidence"]
    unnamed = [name for name in dict.fromkeys(others) if name not in votes][:MOST_ALTERNATIVES]
    shares = _shares(votes, unnamed)
    said = signals.get("user_override", {}).get("project")
    winner = said or (max(votes, key=votes.__getitem__) if votes else "unknown")
    return {
        "project": winner,
        "confidence": 1.0 if said else shares.get(winner, 0.0),
        "method": METHOD,
        "signals": dict(signals),
        "alternatives": _alternatives(shares, winner, signals),
    }


def _shares(votes: Mapping[str, float], unnamed: list[str]) -> dict[str, float]:
    total = sum(votes.values())
    if not total:
        return {}
    doubt = DOUBT if unnamed else 0.0
    shares = {name: (1 - doubt) * weight / total for name, weight in votes.items()}
    shares |= {name: doubt / len(unnamed) for name in unnamed}
    return {name: round(share, 2) for name, share in shares.items()}


def _alternatives(shares: Mapping[str, float], winner: str, signals: Mapping[str, Signal]) -> list[dict[str, Any]]:
    rest = sorted(((n, s) for n, s in shares.items() if n != winner and s > 0), key=lambda pair: (-pair[1], pair[0]))
    return [
        {"project": name, "confidence": share, "reason": _why(name, signals)}
        for name, share in rest[:MOST_ALTERNATIVES]
    ]


def _why(name: str, signals: Mapping[str, Signal]) -> str:
    reasons = [signal["reason"] for signal in signals.values() if signal["project"] == name]
    return "; ".join(reasons) or f"No recent {name}-related activity"


def named_by_path(path: str, known: Mapping_) -> str:
    """The project whose pattern fits most exactly: a folder above it, a piece of the path, or a glob."""
    fits = [(len(p), name) for name, said in known.items() for p in said.get("paths") or () if _fits(path, p)]
    return max(fits)[1] if fits else ""


def _fits(path: str, pattern: str) -> bool:
    if any(c in pattern for c in "*?["):
        return fnmatch.fnmatchcase(path, pattern) or fnmatch.fnmatchcase(path, f"{pattern}/*")
    if pattern.startswith("/"):
        return path == pattern.rstrip("/") or path.startswith(f"{pattern.rstrip('/')}/")
    return f"/{pattern.strip('/')}/" in f"{path}/"


def named_by_remote(remote: str, known: Mapping_) -> str:
    for name, said in known.items():
        if any(part in remote for part in said.get("remotes") or ()):
            return name
    return ""


def remote_name(url: str) -> str:
    return re.sub(r"\.git$", "", url.rstrip("/")).replace(":", "/").rpartition("/")[2][:100]


def safe_name(name: str) -> str:
    """A name that can be a folder's: never empty, never `..`, never hidden."""
    return _UNSAFE.sub("-", name).strip("-.")[:80] or "unnamed"


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0].rpartition("/")[2] or "unnamed"


def _common_folder(paths: list[str]) -> str:
    folders = [p.split("/")[:-1] for p in paths]
    common = []
    for level in zip(*folders, strict=False):
        if len(set(level)) > 1:
            break
        common.append(level[0])
    return ("/".join(common[:1] if not common or common[0] else common) + "/") if common else "./"
