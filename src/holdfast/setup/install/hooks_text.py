"""Edits the `hooks` section of a settings text: adds, updates and removes our entries.

An event's list holds groups (`{"matcher": …, "hooks": [entry, …]}`) or, with some agents, the entries themselves.
"""

import os
import shlex
import sys
import sysconfig
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import holdfast
from holdfast.core.agent import Agent, Hook
from holdfast.setup.install.json_edit import (
    BrokenJson,
    Node,
    append_items,
    apply_edits,
    parse_json,
    parse_json_object,
    remove_item,
    style_of,
)

# Our hook entries: the command they run, and how they are recognised.

CLIENT = "holdfast-hook"
SCRIPT = "holdfast/hook.py"
# The name of the list of entries within a group; also the name of the section.
GROUPED = "hooks"
RUN_IF_THERE = (
    "import posix,sys;del sys.argv[0];p=sys.argv[0];sys.path.append(p[:-8]);"
    "posix.access(p,4) and __import__('hook').run()"
)
"""Python exits with 2 if its script is missing, and agents read that as a refusal: an uninstalled Holdfast would block
everything. Imported rather than run, because only an import finds the compiled form."""


def client_command() -> list[str]:
    """Absolute, because a hook runs with the agent's PATH; never a shim, because those are slow."""
    for folder in _script_folders():
        native = folder / CLIENT
        if native.is_file() and os.access(native, os.X_OK):
            return [str(native)]
    return python_command()


def python_command() -> list[str]:
    script = Path(holdfast.__file__ or "").parent / "hook.py"
    # Isolated (-I) and without site packages (-S): the hook starts faster and runs no foreign code.
    return [str(Path(sys.executable).absolute()), "-I", "-S", "-c", RUN_IF_THERE, str(script.absolute())]


def _script_folders() -> list[Path]:
    """Next to the interpreter first: in a virtual environment that is its own folder, not the base's."""
    named = [Path(sys.executable).absolute().parent, Path(sysconfig.get_path("scripts"))]
    return list(dict.fromkeys(named))


def state_words(state: Path) -> list[str]:
    """Named unless a hook that only knows HOME would find it: the agent may run with another environment."""
    usual = Path.home() / ".local" / "state" / "holdfast"
    elsewhere = os.environ.get("XDG_STATE_HOME")
    # With another XDG_STATE_HOME a hook would look elsewhere than we do now.
    plain = bool(os.environ.get("HOME")) and state == usual and (not elsewhere or Path(elsewhere) / "holdfast" == usual)
    return [] if plain else ["--state", str(state.absolute())]


def wanted_entries(agent: Agent, state: Path) -> dict[str, dict[str, Any]]:
    """The list item of each event: the entry itself, or a group around it."""
    command = our_words(state)  # once, not for each of some thirty events: `status` asks this of every agent
    return {hook.event: _place_entry(agent, hook, command) for hook in agent.hooks if hook.register}


def _place_entry(agent: Agent, hook: Hook, command: list[str]) -> dict[str, Any]:
    if agent.setup is None:
        return {}
    entry = agent.setup.entry(hook, [*command, hook.mode, agent.name, hook.event])
    if agent.setup.layout == "list":
        return entry
    return {**({"matcher": hook.matcher} if hook.matcher else {}), GROUPED: [entry]}


def our_words(state: Path) -> list[str]:
    return [*client_command(), *state_words(state)]


def is_ours(value: Any) -> bool:
    words = words_of(value)
    # By the program, wherever it is: entries of an older installation are ours, too.
    return bool(words) and (Path(words[0]).name == CLIENT or any(_names_us(word) for word in words))


def _names_us(word: str) -> bool:
    return word.endswith((f"/{CLIENT}", f"/{SCRIPT}"))


def words_of(value: Any) -> list[str]:
    """Program and arguments, in exec form and in shell form."""
    if not isinstance(value, Mapping):
        return []
    # `bash` is Copilot's name for the command.
    command, args = value.get("command", value.get("bash")), value.get("args")
    if isinstance(command, list):
        return [word for word in command if isinstance(word, str)]
    if not isinstance(command, str):
        return []
    if isinstance(args, list):
        return [command, *(word for word in args if isinstance(word, str))]
    return _split_words(command)


def _split_words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    # Unbalanced quotes: written by hand, and still compared.
    except ValueError:
        words = command.split()
    # Some entries begin with `exec`, so that no shell stays in between.
    return words[1:] if words[:1] == ["exec"] else words


def missing_program(value: Any) -> str:
    """The file this entry needs and does not find, or empty."""
    words = words_of(value)
    needed = [words[0], *(word for word in words[1:] if word.endswith(f"/{SCRIPT}"))] if words else []
    for position, word in enumerate(needed):
        # The first word is a program, the second a script that is only read.
        if not Path(word).is_file() or (position == 0 and not os.access(word, os.X_OK)):
            return word
    return ""


HOOKS = "hooks"
Wanted = Mapping[str, dict[str, Any]]
"""Our list item by event."""
Place = tuple[Node, int]
"""A container and the index of one of its items."""


def ensure_json_object(text: str) -> str:
    """An empty file becomes an empty object; a byte order mark stays."""
    return text if text.strip("\ufeff \t\r\n") else ("\ufeff" if text.startswith("\ufeff") else "") + "{}\n"


def parse_checked(text: str, expected: Wanted | None = None) -> Node:
    """The parsed text, refused if an agent would not understand it either."""
    root = parse_json_object(text)
    only_once(root, HOOKS)
    if hooks := root.member(HOOKS):
        _check_hooks(hooks, expected or {})
    return root


def _check_hooks(hooks: Node, expected: Wanted) -> None:
    if not hooks.is_object:
        raise BrokenJson(f'"{HOOKS}" is not an object', hooks.start)
    for event in hooks.items:
        only_once(hooks, str(event.key))
        # Lists of events that we do not use are not checked.
        if item := expected.get(str(event.key)):
            _check_event(event, grouped=GROUPED in item)


def only_once(node: Node, key: str) -> None:
    if len(nodes := node.named(key)) > 1:
        raise BrokenJson(f'"{key}" is there twice', nodes[1].begin)


def _check_event(event: Node, grouped: bool) -> None:
    if not event.is_array:
        raise BrokenJson(f'"{event.key}" is not a list', event.start)
    for item in event.items if grouped else ():
        entries = item.member(GROUPED)
        if entries is None or not entries.is_array:
            raise BrokenJson(f'an item of "{event.key}" has no list of hooks', item.start)


def ours_in(root: Node) -> list[tuple[str, Node, int]]:
    """(event, its list, index) of every entry of ours, in text order."""
    hooks = root.member(HOOKS)
    entries = []
    for event in hooks.items if hooks and hooks.is_object else ():
        for position, item in enumerate(event.items if event.is_array else ()):
            entries += [(str(event.key), *where) for where in _ours_at(event, position, item)]
    return entries


def _ours_at(event: Node, position: int, item: Node) -> list[Place]:
    entries = item.member(GROUPED)
    if entries is None:
        return [(event, position)] if is_ours(item.value) else []
    return [(entries, i) for i, entry in enumerate(entries.items if entries.is_array else ()) if is_ours(entry.value)]


def with_ours(text: str, expected: Wanted) -> str:
    text = _without_stale(ensure_json_object(text), expected)
    root = parse_checked(text, expected)
    replaced = [
        (entries.items[i].start, entries.items[i].end, style_of(text, root).dumps(entry_of(expected[event])))
        for event, entries, i in ours_in(root)
        if entries.items[i].value != entry_of(expected[event])
    ]
    return _with_missing(apply_edits(text, replaced), expected)


def entry_of(item: Mapping[str, Any]) -> dict[str, Any]:
    return item[GROUPED][0] if GROUPED in item else dict(item)


def _without_stale(text: str, expected: Wanted) -> str:
    """Remove entries of events we no longer use, and all but the first of each event."""
    # One at a time: each removal moves all other positions.
    while True:
        root = parse_checked(text, expected)
        seen: set[str] = set()
        for event, entries, i in ours_in(root):
            # The first entry of an event stays; a second one would run every hook twice.
            if event not in expected or event in seen:
                text = _without_entry(text, root, (event, entries, i), {HOOKS})
                break
            seen.add(event)
        else:
            return text


def _without_entry(text: str, root: Node, ours: tuple[str, Node, int], keep: Collection[str]) -> str:
    """With every container that then holds nothing, unless it is to be kept."""
    name, entries, index = ours
    hooks = root.member(HOOKS) or root
    event = hooks.named(name)[0]
    grouped = (i for i, item in enumerate(event.items) if item.member(GROUPED) is entries)
    at = index if entries is event else next(grouped)
    if not _is_only_ours(event.items[at]):
        place = entries, index
    elif len(event.items) > 1 or name in keep:
        place = event, at
    elif len(hooks.items) > 1 or HOOKS in keep:
        place = hooks, hooks.items.index(event)
    else:
        place = root, root.items.index(hooks)
    return apply_edits(text, remove_item(text, *place))


def _is_only_ours(item: Node) -> bool:
    """One entry of ours, and around it nothing of others."""
    entries = item.member(GROUPED)
    return entries is None or (len(entries.items) == 1 and _item_is_ours(item))


def _with_missing(text: str, expected: Wanted) -> str:
    root = parse_checked(text, expected)
    style, hooks = style_of(text, root), root.member(HOOKS)
    there = {event for event, _, _ in ours_in(root)}
    items = {event: style.dumps(item) for event, item in expected.items() if event not in there}
    if hooks is None:
        section = style.section(HOOKS, [style.member(event, f"[{item}]") for event, item in items.items()])
        return apply_edits(text, append_items(text, root, [section], style)) if items else text
    edits, members = [], []
    for event, item in items.items():
        if listed := hooks.member(event):
            edits += append_items(text, listed, [item], style)
        else:
            members.append(style.member(event, f"[{item}]"))
    return apply_edits(text, edits + (append_items(text, hooks, members, style) if members else []))


def without_ours(text: str, keep: Collection[str] = ()) -> str:
    """`keep` names the parts (`hooks`, events) that existed before and stay even when empty."""
    # One at a time: each removal moves all other positions.
    while ours := ours_in(root := parse_checked(text)):
        text = _without_entry(text, root, ours[0], keep)
    return text


def _item_is_ours(item: Node) -> bool:
    entries = item.member(GROUPED)
    if entries is None:
        return is_ours(item.value)
    ours = entries.is_array and entries.items and all(is_ours(e.value) for e in entries.items)
    # A group with other members was made by somebody else and must stay.
    return bool(ours) and set(item.value) <= {GROUPED, "matcher"}


def parts_of(text: str) -> frozenset[str]:
    """What `without_ours` must keep, given the text before us."""
    root = parse_json(ensure_json_object(text))
    hooks = root.member(HOOKS)
    return frozenset({HOOKS, *(str(item.key) for item in hooks.items)}) if hooks else frozenset()


def foreign_values(text: str) -> Any:
    """Everything foreign as plain values, which an edit may not change."""
    root = parse_json(ensure_json_object(text))
    value, hooks = dict(root.value), root.member(HOOKS)
    if hooks is None or not hooks.is_object:
        return value
    events = {event.key: _foreign_items(event) for event in hooks.items}
    # Events that held nothing but ours make no difference.
    value[HOOKS] = {name: items for name, items in events.items() if items}
    return value if value[HOOKS] else {k: v for k, v in value.items() if k != HOOKS}


def _foreign_items(event: Node) -> Any:
    if not event.is_array:
        return event.value
    return [_foreign_item(item.value) for item in event.items if not _item_is_ours(item)]


def _foreign_item(item: Any) -> Any:
    listed = item.get(GROUPED) if isinstance(item, dict) else None
    return {**item, GROUPED: [e for e in listed if not is_ours(e)]} if isinstance(listed, list) else item
