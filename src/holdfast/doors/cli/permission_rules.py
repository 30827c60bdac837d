"""Writes allow rules into the agent's settings, after the person agreed."""

from pathlib import Path

import typer

from holdfast import client
from holdfast.doors.cli import render
from holdfast.paths import default_state_dir
from holdfast.setup.install import permission_rules


def write_rules(rules: list[str]) -> None:
    client.authorise("permissions")
    path = permission_rules.settings_path(Path(client.current_project()))
    if not typer.confirm(f"Add {len(rules)} allow rules to {path}?"):
        return
    added = permission_rules.add(rules, default_state_dir(), Path(client.current_project()))
    render.out.print(f"Added {len(added)} rules. Remove them with: holdfast permission remove")


def remove_rules() -> int:
    client.authorise("permissions")
    return permission_rules.remove_all(default_state_dir())
