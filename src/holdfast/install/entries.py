"""Our hook entries: the command they run, and how they are told from everybody else's."""

import os
import shlex
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import holdfast
from holdfast.core.agent import Agent, Hook

CLIENT = "holdfast-hook"
SCRIPT = "holdfast/hook.py"
GROUPED = "hooks"
RUN_IF_THERE = (
    "import posix,sys;del sys.argv[0];p=sys.argv[0];sys.path.append(p[:-8]);"
    "posix.access(p,4) and __import__('hook').run()"
)
"""Python ends with 2 when its script is gone, and agents read that as a refusal: once removed, we would block all.
Imported rather than run, because only an import finds the compiled form."""


def client_command() -> list[str]:
    """Absolute, because a hook runs with whatever PATH the agent has; never a shim, because those are slow."""
    for folder in _script_folders():
        native = folder / CLIENT
        if native.is_file() and os.access(native, os.X_OK):
            return [str(native)]
    return python_command()


def python_command() -> list[str]:
    script = Path(holdfast.__file__ or "").parent / "hook.py"
    return [str(Path(sys.executable).absolute()), "-I", "-S", "-c", RUN_IF_THERE, str(script.absolute())]


def _script_folders() -> list[Path]:
    """Beside the interpreter first: in a virtual environment that is the environment's own, not the base's."""
    named = [Path(sys.executable).absolute().parent, Path(sysconfig.get_path("scripts"))]
    return list(dict.fromkeys(named))


def state_words(state: Path) -> list[str]:
    """Named unless a hook that knows nothing but HOME would find it: the agent may run with another environment."""
    usual = Path.home() / ".local" / "state" / "holdfast"
    elsewhere = os.environ.get("XDG_STATE_HOME")
    plain = bool(os.environ.get("HOME")) and state == usual and (not elsewhere or Path(elsewhere) / "holdfast" == usual)
    return [] if plain else ["--state", str(state.absolute())]


def wanted(agent: Agent, state: Path) -> dict[str, dict[str, Any]]:
    """Event → what stands in its list: the entry itself, or a group around it."""
    return {hook.event: _placed(agent, hook, state) for hook in agent.hooks if hook.register}


def _placed(agent: Agent, hook: Hook, state: Path) -> dict[str, Any]:
    if agent.setup is None:
        return {}
    entry = agent.setup.entry(hook, [*our_words(state), hook.mode, agent.name, hook.event])
    if agent.setup.layout == "list":
        return entry
    return {**({"matcher": hook.matcher} if hook.matcher else {}), GROUPED: [entry]}


def our_words(state: Path) -> list[str]:
    return [*client_command(), *state_words(state)]


def is_ours(value: Any) -> bool:
    words = words_of(value)
    return bool(words) and (Path(words[0]).name == CLIENT or any(_names_us(word) for word in words))


def _names_us(word: str) -> bool:
    return word.endswith((f"/{CLIENT}", f"/{SCRIPT}"))


def words_of(value: Any) -> list[str]:
    """Program and arguments, in the exec form and in the shell form."""
    command = value.get("command", value.get("bash")) if isinstance(value, Mapping) else None
    if isinstance(command, list):
        return [word for word in command if isinstance(word, str)]
    if not isinstance(command, str):
        return []
    if isinstance(value, Mapping) and isinstance(args := value.get("args"), list):
        return [command, *(word for word in args if isinstance(word, str))]
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    return words[1:] if words[:1] == ["exec"] else words


def missing_program(value: Any) -> str:
    """The file this entry needs and does not find, or nothing."""
    words = words_of(value)
    needed = [words[0], *(word for word in words[1:] if word.endswith(f"/{SCRIPT}"))] if words else []
    for place, word in enumerate(needed):
        if not Path(word).is_file() or (place == 0 and not os.access(word, os.X_OK)):
            return word
    return ""
