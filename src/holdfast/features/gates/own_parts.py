"""Whether a tool call would change what Holdfast itself needs: its state, settings, hooks and daemon."""

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from holdfast.analysis.shell.command_effects import read_acts
from holdfast.core.agent import agent_folders, agent_programs, is_hook_file
from holdfast.core.event import Event
from holdfast.core.kinds import ToolPayload
from holdfast.core.lazy import lazy_pattern
from holdfast.features.gates.rules.tool_commands import command_of
from holdfast.paths import default_config_dir, default_state_dir, open_regular

LARGEST_SCRIPT = 64 * 1024
_LISTERS = frozenset(("ls", "stat", "find", "du", "file", "test"))
_QUIET = frozenset(("grep", "rg", "git", "cat", "less", "man", "head", "tail", "ls"))
_KILLS_PROCESSES = lazy_pattern(r"(?:^|[;&|(\n]|\bxargs\s|\bsudo\s)\s*(?:kill|pkill|killall|skill)\b")
_KILLS = lazy_pattern(r"\b(?:kill|pkill|killall|skill)\b")
# A variable that pauses Holdfast, set to anything but a word for "no".
_PAUSES = lazy_pattern(
    r"\b(?:HOLDFAST_PAUSE|CLAUDE_SKIP_REQUIREMENTS)['\"]?\s*[=:,]\s*['\"]?(?!0\b|no\b|false\b|off\b|['\"]?(?:\s|$))\S"
)
_CHANGES_MODE = lazy_pattern(r"\b(?:chmod|chown|chattr|setfacl|mount|umount|unlink|shred)\b")
_LOOKS_INTO = lazy_pattern(
    r"^\s*sqlite3?\s[^|;&]*\bselect\b(?!.*\b(?:insert|update|delete|drop|alter|replace|attach|pragma|writefile)\b)",
    re.I | re.S,
)
_OUR_PROGRAM = lazy_pattern(r"/(?:holdfast|holdfast-hook)$")
# Flags, settings and environment variables by which an agent runs without its usual hooks.
_WITHOUT_HOOKS = lazy_pattern(
    r"disableAllHooks|--setting-sources|--disable[ =]\S*hooks|features\.hooks\s*=\s*false|--no-hooks|--settings[ =]\S*(?:hooks|\{)|--bare\b"
    r"|(?:^|[\s;&|(])(?:HOME|USERPROFILE|XDG_CONFIG_HOME|CLAUDE_CONFIG_DIR|CODEX_HOME|GEMINI_\w*HOME|QWEN_HOME|COPILOT_HOME)=",
    re.IGNORECASE,
)
"""A nested agent started without hooks: with other settings or another home."""
_HOME_FOLDER = lazy_pattern(r"(?<![\w/])~(?=/)|\$HOME\b|\$\{HOME\}")
_ABOUT_HOOKS = lazy_pattern(r"hooks|disableAllHooks|holdfast", re.IGNORECASE)


def real_path(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return path


def read_script(path: str) -> str:
    try:
        with open(path, "rb", opener=open_regular) as file:
            return file.read(LARGEST_SCRIPT).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def touched_parts(event: Event, data: ToolPayload) -> list[str]:
    """What of Holdfast a tool call would change: state, settings, hooks, daemon, pause."""
    parts = {part for path in data.written if (part := _protected_part(path, event, data))}
    if data.action in ("shell", "mcp", "other") and (command := command_of(event)):
        parts |= _touched_by_command(command)
    return sorted(parts)


ABOVE = "above"


def _protected_part(path: str, event: Event, data: ToolPayload) -> str:
    part = _part_at(path, default_state_dir(), default_config_dir(), os.path.expanduser("~"))
    if part == ABOVE:
        return "hooks" if _removes(data) else ""
    return part or ("hooks" if _is_about_hooks(event, data, path) or _is_git_hook(path) else "")


def _is_git_hook(path: str) -> bool:
    """One that asks Holdfast before agents commit or push (`gate hooks on`)."""
    name = path.rpartition("/")[2]
    return name in ("reference-transaction", "pre-push") and "holdfast" in read_script(path)


@lru_cache(1_000)
def _part_at(path: str, state: Path, config: Path, home: str) -> str:
    """Which part of Holdfast is at this path, ABOVE if below it; empty otherwise."""
    folders = _own_folders(state, config)
    inside = (part for folder, part in folders if path == folder or path.startswith(f"{folder}/"))
    if part := next(inside, ""):
        return part
    if path == f"{home}/.claude/requirements.yaml":
        return "settings"
    if _OUR_PROGRAM.search(path):
        return "hooks"
    return ABOVE if _is_above(path, home, [folder for folder, _ in folders]) else ""


def _is_above(path: str, home: str, folders: list[str]) -> bool:
    """The home, an agent's folder, or one with ours in it. `find ~/.local/state … -delete` removes below a folder."""
    if path == home or path in {f"{home}/{folder}" for folder in agent_folders()}:
        return True
    below = f"{path.removesuffix('/**')}/"
    return path != f"{home}/**" and any(folder.startswith(below) for folder in folders)


def _removes(data: ToolPayload) -> bool:
    """Not `mkdir -p ~/.claude`: the folder is there already, or empty."""
    if data.action != "shell":
        return False
    names = _programs(data.command)
    return not names.isdisjoint({"rm", "mv", "chmod", "chown", "ln", "rmdir", "unlink", "find", "git"})


@lru_cache(8)
def _own_folders(state: Path, config: Path) -> tuple[tuple[str, str], ...]:
    """Also where they really lie. Asked for every file that a call writes: looked up once."""
    named = ((state, "state"), (config, "settings"))
    return tuple(dict.fromkeys((name, what) for path, what in named for name in (str(path), real_path(str(path)))))


def _is_about_hooks(event: Event, data: ToolPayload, path: str) -> bool:
    """Permissions and the like in the agent's settings are its own matter; the hooks in them are not."""
    if not is_hook_file(path):
        return False
    texts = [value for value in data.input.values() if isinstance(value, str) and value != path]
    # Without any text in the input nothing shows that hooks are left alone.
    if data.action == "shell" or not texts:
        return True
    old, new = data.input.get("old_string"), data.input.get("new_string")
    if path.endswith(".json") and old in texts and new in texts:
        return _changes_hooks(read_script(path), old, new)
    # A file that is replaced loses the hooks that were in it, whatever the new text says.
    texts += [read_script(path)] if event.tool == "Write" else []
    return any(map(_ABOUT_HOOKS.search, texts))


def _changes_hooks(text: str, old: str, new: str) -> bool:
    """Whether an edit leaves other hooks in the file, or a file that cannot be read."""
    try:
        before, after = (
            msgspec.json.decode(one or "{}", type=dict[str, Any]) for one in (text, text.replace(old, new))
        )
    except msgspec.DecodeError:
        return True
    return before.get("hooks") != after.get("hooks") or bool(after.get("disableAllHooks"))


def _touched_by_command(text: str) -> set[str]:
    found = {
        "daemon": _KILLS.search(text) and _names_daemon(text) and not _only_quotes(text),
        "pause": _PAUSES.search(text) and not _only_quotes(text),
        "state": _opens_state(text),
        "hooks": _WITHOUT_HOOKS.search(text) and not agent_programs().isdisjoint(_programs(text)),
    }
    return {part for part, touched in found.items() if touched}


def _programs(text: str) -> set[str]:
    """The programs that a command starts."""
    return {reading.partition(" ")[0] for reading in read_acts(text).readings}


def _names_daemon(text: str) -> bool:
    """By the number of its process, by its lock file, or by its name."""
    text = re.sub(r"[\[\]'\"\\\\]", "", text)  # `pgrep -f hold[f]ast` finds it too.
    return "daemon.lock" in text or "holdfast" in text or str(os.getpid()) in re.findall(r"\d+", text)


def _opens_state(text: str) -> bool:
    """Sockets, keys and the database are asked by `holdfast`; commands that only look at logs and the like are allowed."""
    home = os.path.expanduser("~")
    # As the shell would read it, because people write the state folder with `~`.
    text = _HOME_FOLDER.sub(lambda _: home, text)
    state = re.escape(str(default_state_dir()))
    if not re.search(state, text):
        return False
    # Given to a container, which may do anything with it.
    if re.search(state + r"(?::|,(?:target|dst|destination)=)", text):
        return True
    # Sockets and the database: reading them bypasses what `holdfast` allows.
    if re.search(state + r"/(?:run/|holdfast\.db\b)", text):
        return not (_only_starts(text, _LISTERS) or _LOOKS_INTO.search(text))
    return bool(_CHANGES_MODE.search(text)) and not _only_quotes(text)


def _only_starts(text: str, names: frozenset[str]) -> bool:
    programs = _programs(text)
    return bool(programs) and programs <= names


def _only_quotes(text: str) -> bool:
    """`grep kill docs` and the like start no such program."""
    return _only_starts(text, _QUIET) and not _KILLS_PROCESSES.search(text)
