"""~/.claude/project_mapping.yml: which paths and remotes belong to which project. A file that is wrong is as none."""

import os
from pathlib import Path
from typing import Any

LARGEST = 256 * 1024
MOST_PROJECTS = 500

Known = dict[str, dict[str, list[str]]]


def read(path: str) -> Known:
    """`projects: {name: {paths: […], remotes: […]}}`, or shorter `name: […paths]`."""
    try:
        file = Path(path).expanduser()
        if not file.is_file() or file.stat().st_size > LARGEST:
            return {}
    except (OSError, ValueError, RuntimeError):
        return {}
    return _projects(file)


def _projects(file: Path) -> Known:
    from ruamel.yaml import YAML  # Here, because a daemon's start should not wait for it.
    from ruamel.yaml.error import YAMLError

    try:
        found = YAML(typ="safe", pure=True).load(file.read_bytes())
    except (OSError, YAMLError, ValueError, RecursionError):
        return {}
    projects = found.get("projects", found) if isinstance(found, dict) else {}
    if not isinstance(projects, dict):
        return {}
    return {str(name): _said(value) for name, value in list(projects.items())[:MOST_PROJECTS]}


def _said(value: Any) -> dict[str, list[str]]:
    if isinstance(value, dict):
        return {"paths": _paths(value.get("paths")), "remotes": _texts(value.get("remotes"))}
    return {"paths": _paths(value), "remotes": []}


def _paths(value: Any) -> list[str]:
    return [os.path.expanduser(text) for text in _texts(value)]  # noqa: PTH111 - may be a pattern


def _texts(value: Any) -> list[str]:
    listed = [value] if isinstance(value, str) else value
    return [text for text in listed if isinstance(text, str) and text] if isinstance(listed, list) else []
