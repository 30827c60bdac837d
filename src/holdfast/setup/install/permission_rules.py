"""Adds allow rules to Claude Code's settings and removes exactly those again."""

from pathlib import Path

import msgspec

from holdfast.agents import AGENTS
from holdfast.core.errors import InstallRefused
from holdfast.paths import write_atomically
from holdfast.setup.install import locations
from holdfast.setup.install.hooks_text import ensure_json_object
from holdfast.setup.install.json_edit import (
    BrokenJson,
    Node,
    append_items,
    apply_edits,
    line_of,
    parse_json_object,
    remove_item,
    style_of,
)

AGENT = "claude-code"
RECORD = "permission-rules.json"


def settings_path(project: Path) -> Path:
    return locations.settings_file(AGENTS[AGENT], "user", project)


def added_rules(state: Path) -> dict[str, list[str]]:
    """The rules we added, by file."""
    try:
        return msgspec.json.decode((state / RECORD).read_bytes(), type=dict[str, list[str]])
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        return {}


def with_rules(text: str, rules: list[str]) -> tuple[str, list[str]]:
    """The text with the rules, and those that were not there already."""
    text = ensure_json_object(text)
    for name, empty in (("permissions", "{}"), ("allow", "[]")):
        root = parse_json_object(text)
        holder = root if name == "permissions" else root.member("permissions")
        if holder is None or not holder.is_object:
            raise BrokenJson("`permissions` is not an object", holder.start if holder else root.start)
        if holder.member(name) is None:
            style = style_of(text, root)
            text = apply_edits(text, append_items(text, holder, [style.member(name, empty)], style))
    root = parse_json_object(text)
    allow = _allow_of(root)
    if allow is None:
        raise BrokenJson("`permissions.allow` is not a list", root.start)
    new = [rule for rule in rules if rule not in allow.value]
    if not new:
        return text, []
    style = style_of(text, root)
    return apply_edits(text, append_items(text, allow, [style.dumps(rule) for rule in new], style)), new


def without_rules(text: str, rules: list[str]) -> str:
    """Lists that are empty then go too."""
    for rule in rules:
        allow = _allow_of(parse_json_object(text))
        if allow is not None and rule in allow.value:
            text = apply_edits(text, remove_item(text, allow, allow.value.index(rule)))
    for path in (("permissions", "allow"), ("permissions",)):
        text = _without_empty(text, path)
    return text


def _without_empty(text: str, path: tuple[str, ...]) -> str:
    holder: Node | None = parse_json_object(text)
    for name in path[:-1]:
        holder = holder.member(name) if holder else None
    node = holder.member(path[-1]) if holder else None
    if holder is None or node is None or node.items or node.value:
        return text
    return apply_edits(text, remove_item(text, holder, holder.items.index(node)))


def _allow_of(root: Node) -> Node | None:
    permissions = root.member("permissions")
    allow = permissions.member("allow") if permissions and permissions.is_object else None
    return allow if allow and allow.is_array else None


def add(rules: list[str], state: Path, project: Path) -> list[str]:
    path = settings_path(project)
    locations.refuse_unwritable(path)
    before = (locations.read_content(path) or b"").decode()
    try:
        after, new = with_rules(before, rules)
    except BrokenJson as error:
        raise InstallRefused(
            error.problem, where=f"{path}:{line_of(before, error.at)}", fix="Correct the file."
        ) from error
    if new:
        # Recorded first: a kill in between leaves rules on record that are not there, which removal passes over.
        _record(state, {**added_rules(state), str(path): [*added_rules(state).get(str(path), []), *new]})
        path.parent.mkdir(parents=True, exist_ok=True)
        locations.replace_file(path, after.encode())
    return new


def remove_all(state: Path) -> int:
    """How many were removed. A file that nobody can read is left, and stays on record."""
    removed, left = 0, dict[str, list[str]]()
    for name, rules in added_rules(state).items():
        content = locations.read_content(Path(name))
        try:
            text = (content or b"{}").decode()
            after = without_rules(text, rules)
        except (BrokenJson, UnicodeDecodeError):
            left[name] = rules
            continue
        if content is not None and after != text:
            locations.replace_file(Path(name), after.encode())
            removed += len(rules)
    if removed or added_rules(state) != left:
        _record(state, left)
    return removed


def _record(state: Path, rules: dict[str, list[str]]) -> None:
    if rules:
        write_atomically(state / RECORD, msgspec.json.encode(rules))
    else:
        (state / RECORD).unlink(missing_ok=True)
