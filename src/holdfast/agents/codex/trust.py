"""Which hooks Codex runs: those that its user has reviewed, in projects that its user trusts."""

import tomllib
from pathlib import Path
from typing import Any


def hold_up(file: Path, level: str, project: Path) -> str:
    """Why Codex does not run the hooks of this file; empty where it does."""
    config = _config()
    if level == "project" and _table(_table(config, "projects"), str(project)).get("trust_level") != "trusted":
        return f"Codex does not trust {project}, so it runs no hooks of {file}"
    reviewed = _table(_table(config, "hooks"), "state")
    # Codex keys its reviews by a name that holds the file's path.
    if not any(str(file) in name and _table(reviewed, name).get("trusted_hash") for name in reviewed):
        return f"Codex skips the hooks in {file} until they are reviewed"
    return ""


def _config() -> dict[str, Any]:
    try:
        return tomllib.loads((Path.home() / ".codex" / "config.toml").read_text())
    except (OSError, ValueError):
        return {}


def _table(value: dict[str, Any], name: str) -> dict[str, Any]:
    table = value.get(name)
    return table if isinstance(table, dict) else {}
