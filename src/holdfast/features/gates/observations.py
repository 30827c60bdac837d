"""What is looked at when an event comes, before anything is decided: files behind links, scripts, aliases, branches.

The only part of the gates that touches the disk in front of a hook. What it sees is written into the event's payload.
"""

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from glob import iglob
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec

from holdfast.analysis.shell.command_effects import CommandActs, names_to_resolve, read_acts
from holdfast.analysis.shell.program_code import shell_of_code
from holdfast.analysis.shell.written_files import patched_files
from holdfast.core import git
from holdfast.core.agent import agent_folders, agent_programs, is_hook_file
from holdfast.core.caller import LEFT_BEHIND
from holdfast.core.event import Event
from holdfast.core.fingerprint import content_key, shared_fingerprinter
from holdfast.core.git_state import last_verb, read_refs
from holdfast.core.job import run_briefly
from holdfast.core.kinds import TOOL_ENDS, HookPayload, ToolPayload
from holdfast.core.lazy import lazy_pattern
from holdfast.features.gates.kinds.evidence import covered_globs
from holdfast.features.gates.looking import only_looks
from holdfast.features.gates.rules.in_force import any_in_force
from holdfast.features.gates.rules.self_proof import is_named_by
from holdfast.features.gates.rules.tool_commands import CAMEL, command_of
from holdfast.features.gates.rules.triggered import triggered_rules
from holdfast.paths import default_config_dir, default_state_dir, open_regular

if TYPE_CHECKING:
    from holdfast.features.gates.settings import GateSettings

HEAD, HEAD_BRANCH, HEAD_VERB = "HEAD", "HEAD branch", "HEAD verb"
LARGEST_SCRIPT = 64 * 1024
MOST_FILES = 100
# Names that one command may stand for, and how often what they stand for is read for further names.
MOST_NAMES, MEANING_DEPTH = 20, 4
# In seconds: what git may take in front of a hook, and what a look at the content may.
GIT_S = 0.3
CONTENT_S = 0.15
OBSERVED = frozenset(
    {"tool.started", "tool.finished", "tool.failed", "turn.ended", "session.started", "prompt.submitted"}
)
# A word of the tool's name says that it writes; `_` joins the words after camel case was split.
_WRITING_TOOL = lazy_pattern(
    r"(?:^|_)(?:write|edit|create|update|delete|remove|move|rename|copy|patch|apply|insert|replace|append|put|save|set|truncate|modify|upsert|overwrite|str)(?:_|$)",
    re.IGNORECASE,
)
_READING_TOOL = lazy_pattern(
    r"(?:^|_)(?:read|get|list|ls|search|find|grep|view|show|stat|info|fetch|query|describe|tree|diff|open|look|check|lint|analy[sz]e)(?:_|$)",
    re.IGNORECASE,
)
# Keys under which tools take a path: `file_path`, `uri`, `destination`.
_PATH_KEY = lazy_pattern(
    r"^path|(?:path|file|filename|uri|notebook|document|destination|dest|target|source|src|from|to)s?$", re.IGNORECASE
)
_CONTENT_KEY = lazy_pattern(
    r"^(?:new_?)?(?:content|text|body|data|edit|patch|diff|value|code|string|str|source)s?$", re.IGNORECASE
)
LONGEST_PATH = 4096
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
"""An agent of its own that is started so that its hooks are not: with other settings, or another home."""
_HOME_VARIABLE = lazy_pattern(r"\$HOME\b|\$\{HOME\}")
_HOME_FOLDER = lazy_pattern(r"(?<![\w/])~(?=/)|\$HOME\b|\$\{HOME\}")
_ABOUT_HOOKS = lazy_pattern(r"hooks|disableAllHooks|holdfast", re.IGNORECASE)


def content_parts(settings: "GateSettings") -> list[tuple[str, ...]]:
    """Parts of the worktree whose content rules compare, each as globs."""
    parts = covered_globs(settings.rules)
    parts += [rule.spec.paths for rule in settings.rules if rule.spec.paths]
    return list(dict.fromkeys(part for part in parts if part != ("**",)))


def look_at_content(root: str, settings: "GateSettings") -> dict[str, str]:
    """Fingerprints of the parts that rules compare, as the worktree is now. Empty if it can't be read in time."""
    parts = [(), *content_parts(settings)]
    taken = shared_fingerprinter().take_patiently(root, parts, CONTENT_S)
    return {content_key(part): one.content for part, one in zip(parts, taken, strict=True) if one.is_known}


def observe_event(event: Event, settings: "GateSettings | None", _parts: Any = None) -> bool:
    data = event.data
    if settings is None or not isinstance(data, HookPayload) or not (settings.rules or any_in_force()):
        return False
    data.settings_at = settings.changed_at
    ended = event.kind in TOOL_ENDS and event.get("action") == "shell"
    data.left_running = LEFT_BEHIND.observe(data.settings_at, ended)
    if isinstance(data, ToolPayload):
        _observe_tool(event, data, settings)
        return _brought_text(data, settings)
    return False


def _brought_text(data: ToolPayload, settings: "GateSettings") -> bool:
    """Whether names or texts of the world came in that the payload did not have: all that it had is redacted already."""
    verb = data.refs.get(HEAD_VERB, "")
    plain = not verb or (verb.isalpha() and len(verb) < 20)
    # Branches that a pattern matches are named by the repository.
    own_names = {HEAD, HEAD_BRANCH, HEAD_VERB, *settings.protected_branches}.issuperset(data.refs)
    return bool(data.meanings) or not plain or not own_names or not set(data.written).issubset(data.paths)


def _observe_tool(event: Event, data: ToolPayload, settings: "GateSettings") -> None:
    root = data.worktree or event.project
    if data.action in ("shell", "mcp", "other") and (command := command_of(event)):
        _observe_command(data, command, root)
    elif data.action == "edit":
        data.written = resolve_links(data.paths)
    if data.action in ("mcp", "other") and writes_files(event.tool.rpartition("__")[2], data.input):
        data.written += resolve_links([*data.paths, *_named_files(data.input, data.cwd or root)])
    data.touches = _touched_parts(event, data)
    if data.repo and not data.content and _wants_content(event, data, settings):
        data.content = look_at_content(root, settings)
    # Without an act that could move a branch the refs need not be read.
    if data.action in ("shell", "mcp") and data.repo and not (data.command and only_looks(data.command)):
        data.refs = _observe_refs(data, settings)


def _wants_content(event: Event, data: ToolPayload, settings: "GateSettings") -> bool:
    """Before what needs proof, after a command that may be proof, and after one that may have changed files which no
    command may change unseen."""
    if event.kind == "tool.started":
        return any(rule.kind.is_proven and rule.at_tool for rule in triggered_rules(settings, event))
    if data.action == "edit" or (data.action == "shell" and only_looks(data.command)):
        return False
    if data.action == "shell" and any(is_named_by(rule, data.command) for rule in settings.rules):
        return True
    guarded = any(fnmatchcase(data.branch, glob) for glob in settings.protected_branches)
    return guarded or any(rule.spec.paths and rule.at_tool and not rule.kind.is_proven for rule in settings.rules)


def _observe_command(data: ToolPayload, command: str, root: str) -> None:
    cwd = data.cwd or root
    home = os.path.expanduser("~")
    text = _HOME_VARIABLE.sub(lambda _: home, command) if "HOME" in command else command
    data.meanings = _resolve_names(names_to_resolve(text, cwd), cwd)
    acts = read_acts(text, cwd, data.meanings)
    data.written = without_ignored(resolve_links(_absolute_paths(acts.writes, cwd, home)), root)


def _absolute_paths(names: Iterable[str], cwd: str, home: str) -> list[str]:
    """`~` stands for the home folder also after it was joined with where the command is."""
    paths = []
    for name in names:
        at = name.find("~/")
        name = home + name[at + 1 :] if at == 0 or (at > 0 and name[at - 1] == "/") else name
        paths.append(os.path.normpath(os.path.join(cwd, name)))
    return paths


def resolve_links(paths: Sequence[str]) -> list[str]:
    """Where a write would really go: `cfg/prod.tf` may be `infra/prod.tf`."""
    named = [name for path in paths[:MOST_FILES] for name in _matching_files(path)]
    return list(dict.fromkeys(_real_path(path) for path in named[:MOST_FILES]))


def _matching_files(path: str) -> list[str]:
    """`in*ra/prod.tf` is what lies there; where nothing does, the name itself."""
    # A folder as a whole is a mark of our own, not a pattern to expand.
    if path.endswith("/**") or not re.search(r"[*?\[]", path):
        return [path]
    return list(islice(iglob(path), MOST_NAMES)) or [path]


def _real_path(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return path


_IGNORED: dict[tuple[str, str, tuple[int, ...]], bool] = {}
"""Root, file and when its ignore files changed → what git said."""
MOST_IGNORED = 2_000


def without_ignored(paths: list[str], root: str) -> list[str]:
    """Logs and build results that git ignores are no edits. Where git does not answer nothing is left out."""
    # A name with a newline or a star cannot be asked of git as one file.
    inside = [path for path in paths if path.startswith(f"{root}/") and "\n" not in path and "*" not in path]
    keys = {path: (root, path, _ignore_stamp(root, path)) for path in inside}
    fresh = [path for path, key in keys.items() if key not in _IGNORED]
    if fresh:
        answered = _ask_ignored(fresh, root)
        if answered is None:
            return paths
        if len(_IGNORED) > MOST_IGNORED:
            # Cleared rather than ordered: the answers are found again with one call of git.
            _IGNORED.clear()
        _IGNORED.update({keys[path]: path in answered for path in fresh})
    return [path for path in paths if path not in keys or not _IGNORED.get(keys[path])]


def _ignore_stamp(root: str, path: str) -> tuple[int, ...]:
    """When the files were changed that say what git ignores there."""
    # `.git` may be a file in a worktree; then there is no such path, and the stamp is 0.
    folder, stamps = os.path.dirname(path), [_changed_at(f"{root}/.git/info/exclude")]
    while folder.startswith(root) and len(stamps) < MOST_NAMES:
        stamps.append(_changed_at(f"{folder}/.gitignore"))
        folder = os.path.dirname(folder)
    return tuple(stamps)


def _changed_at(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _ask_ignored(inside: list[str], root: str) -> set[str] | None:
    stdin = b"\0".join(os.fsencode(path) for path in inside)
    argv = git.git_argv("check-ignore", "-z", "--stdin")
    try:
        ran = run_briefly(argv, cwd=root, env=git.git_environment(os.environ), stdin=stdin, timeout=GIT_S)
    except OSError:
        return None
    # 0: some are ignored · 1: none is; any other code is a failure of git.
    return {os.fsdecode(name) for name in ran.out.split(b"\0") if name} if ran.code in (0, 1) else None


def writes_files(tool: str, tool_input: dict[str, Any]) -> bool:
    """By its name; else by having both a file and something to put into it."""
    name = CAMEL.sub("_", tool)
    if _WRITING_TOOL.search(name):
        return True
    keys = [key for key, _ in _strings_in(tool_input)]
    contents = any(_CONTENT_KEY.search(key) for key in keys)
    return not _READING_TOOL.search(name) and contents and any(_PATH_KEY.search(key) for key in keys)


def _named_files(tool_input: dict[str, Any], cwd: str) -> list[str]:
    """Files that a tool's input names: under a key for paths at any depth, and in a patch."""
    names = []
    names += [key for key in _path_keys(tool_input) if len(key) <= LONGEST_PATH]
    for key, value in _strings_in(tool_input):
        if "+++" in value or "*** " in value:
            names += patched_files(value)
        elif _PATH_KEY.search(key) and len(value) <= LONGEST_PATH and "\n" not in value:
            names.append(value)
    names = [unquote(name.removeprefix("file://")) if name.startswith("file://") else name for name in names]
    return [os.path.normpath(os.path.join(cwd, name)) for name in names if "://" not in name][:MOST_FILES]


def _path_keys(tool_input: Any, depth: int = 4) -> Iterator[str]:
    """`{"changes": {"src/app.py": …}}`: files that are named as keys."""
    if isinstance(tool_input, dict) and depth:
        for name, value in tool_input.items():
            if "/" in name and not re.search(r"\s", name):
                yield name
            yield from _path_keys(value, depth - 1)


def _strings_in(tool_input: Any, key: str = "", depth: int = 6) -> Iterator[tuple[str, str]]:
    """(the nearest key, text), at any depth that people use."""
    if isinstance(tool_input, str):
        yield key, tool_input
    elif isinstance(tool_input, dict) and depth:
        for name, value in tool_input.items():
            yield from _strings_in(value, str(name), depth - 1)
    elif isinstance(tool_input, list) and depth:
        for value in tool_input[:MOST_FILES]:
            yield from _strings_in(value, key, depth - 1)


# ── what names stand for ─────────────────────────────────────────────────────────────────────────────────────────────


def _resolve_names(names: list[str], cwd: str) -> dict[str, str]:
    """Also of the names that these stand for in turn: a recipe that runs a script that runs a recipe."""
    meanings: dict[str, str] = {}
    for _ in range(MEANING_DEPTH):
        fresh = {
            name: text for name in names[:MOST_NAMES] if name not in meanings and (text := _resolve_name(name, cwd))
        }
        if not fresh:
            break
        meanings |= fresh
        names = [name for text in fresh.values() for name in names_to_resolve(text, cwd)]
    return meanings


def _resolve_name(name: str, cwd: str) -> str:
    kind, _, rest = name.partition(" ")
    if kind == "git":
        return _git_alias(rest, cwd)
    if kind == "file":
        return _script_text(os.path.join(cwd, rest))
    if kind == "code":
        return shell_of_code(_read_file(os.path.join(cwd, rest)), rest.rpartition(".")[2])
    if kind == "patch":
        # As shell text that writes these files, so that it is read like any other command.
        return "\n".join(f": > {shlex.quote(name)}" for name in patched_files(_read_file(os.path.join(cwd, rest))))
    from holdfast.analysis.shell.recipes import read_recipe

    runner, folder, target, *more = rest.split("\0")
    return read_recipe(runner, target, os.path.join(cwd, folder), _read_file, "".join(more))


def _git_alias(verb: str, cwd: str) -> str:
    # The verb becomes the name of a setting, which must not hold anything else.
    if not re.fullmatch(r"[\w.-]{1,60}", verb):
        return ""
    try:
        argv = git.git_argv("config", "--get", f"alias.{verb}")
        ran = run_briefly(argv, cwd=cwd, env=git.git_environment(os.environ), timeout=GIT_S)
    except OSError:
        return ""
    value = ran.out.decode("utf-8", "replace").strip()
    # An alias that begins with `!` is a shell command, any other one a verb of git.
    return value[1:] if value.startswith("!") else f"git {value}" if value else ""


def _script_text(path: str) -> str:
    text = _read_file(path)
    first = text.partition("\n")[0]
    if "\0" in text:
        return ""
    is_shell = not first.startswith("#!") or re.search(r"\b(?:ba|da|z|k)?sh\b", first)
    return text if is_shell else shell_of_code(text)


def _read_file(path: str) -> str:
    try:
        with open(path, "rb", opener=open_regular) as file:
            return file.read(LARGEST_SCRIPT).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def _observe_refs(data: ToolPayload, settings: "GateSettings") -> dict[str, str]:
    """Where the branches stand that rules are about, and what git itself last noted of the one checked out."""
    # The branch is always noted: it says that somebody looked, also where a protected one is gone.
    refs = {**read_refs(data.repo, settings.protected_branches), HEAD_BRANCH: data.branch}
    if data.branch and settings.index.names_commits:
        head = read_refs(data.repo, (data.branch,)).get(data.branch, "")
        refs |= {HEAD: head, HEAD_BRANCH: data.branch, HEAD_VERB: last_verb(data.repo)} if head else {}
    return refs


# ── what is Holdfast's own ───────────────────────────────────────────────────────────────────────────────────────────


def _touched_parts(event: Event, data: ToolPayload) -> list[str]:
    subjects = {what for path in data.written if (what := _protected_part(path, event, data))}
    if data.action in ("shell", "mcp", "other") and (command := command_of(event)):
        subjects |= _touched_by_command(command)
    return sorted(subjects)


def _protected_part(path: str, event: Event, data: ToolPayload) -> str:
    folders = _own_folders(default_state_dir(), default_config_dir())
    what = next((what for folder, what in folders if path == folder or path.startswith(f"{folder}/")), "")
    if what:
        return what
    home = os.path.expanduser("~")
    if path == f"{home}/.claude/requirements.yaml":
        return "settings"
    # `find ~/.local/state … -delete` removes below a folder.
    above = path == home or any(
        folder.startswith(f"{path.removesuffix('/**')}/") for folder, _ in folders if path != f"{home}/**"
    )
    if above or path in {f"{home}/{folder}" for folder in agent_folders()}:
        return "hooks" if data.action == "shell" and not _only_makes(data) else ""
    if _OUR_PROGRAM.search(path):
        return "hooks"
    if is_hook_file(path):
        return "hooks" if _is_about_hooks(event, data, path) else ""
    return ""


def _only_makes(data: ToolPayload) -> bool:
    """`mkdir -p ~/.claude`: the folder is there already, or empty."""
    names = {one.partition(" ")[0] for one in read_acts(data.command).readings}
    return not names & {"rm", "mv", "chmod", "chown", "ln", "rmdir", "unlink", "find", "git"}


@lru_cache(8)
def _own_folders(state: Path, config: Path) -> tuple[tuple[str, str], ...]:
    """Also where they really lie. Asked for every file that a call writes: looked up once."""
    named = ((state, "state"), (config, "settings"))
    return tuple(dict.fromkeys((name, what) for path, what in named for name in (str(path), _real_path(str(path)))))


def _is_about_hooks(event: Event, data: ToolPayload, path: str) -> bool:
    """Permissions and the like in the agent's settings are its own matter; the hooks in them are not."""
    if data.action == "shell":
        return True
    texts = [value for value in data.input.values() if isinstance(value, str) and value != path]
    # Without any text in the input nothing shows that hooks are left alone.
    if not texts:
        return True
    old, new = data.input.get("old_string"), data.input.get("new_string")
    if isinstance(old, str) and isinstance(new, str) and old and path.endswith(".json"):
        return _changes_hooks(_read_file(path), old, new)
    # A file that is written anew loses the hooks that were in it, whatever the new text says.
    replaced = event.tool == "Write" and _ABOUT_HOOKS.search(_read_file(path))
    return bool(replaced) or any(_ABOUT_HOOKS.search(text) for text in texts)


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
    subjects = set()
    if _KILLS.search(text) and _names_daemon(text) and not _only_quotes(text):
        subjects.add("daemon")
    if _PAUSES.search(text) and not _only_quotes(text):
        subjects.add("pause")
    if _opens_state(text):
        subjects.add("state")
    if _WITHOUT_HOOKS.search(text) and _starts_agent(text):
        subjects.add("hooks")
    return subjects


def _starts_agent(text: str) -> bool:
    return any(one.partition(" ")[0] in agent_programs() for one in read_acts(text).readings)


def _names_daemon(text: str) -> bool:
    """By the number of its process, by its lock file, or by its name."""
    text = re.sub(r"[\[\]'\"\\\\]", "", text)  # `pgrep -f hold[f]ast` finds it too.
    return "daemon.lock" in text or "holdfast" in text or str(os.getpid()) in re.findall(r"\d+", text)


def _opens_state(text: str) -> bool:
    """Sockets, keys and the database are asked by `holdfast`; what only looks at logs and the like is nobody's concern."""
    home = os.path.expanduser("~")
    # As the shell would read it, because people write the state folder with `~`.
    text = _HOME_FOLDER.sub(lambda _: home, text)
    state = str(default_state_dir())
    if state not in text:
        return False
    # Given to a container, which may do anything with it.
    if re.search(re.escape(state) + r"(?::|,(?:target|dst|destination)=)", text):
        return True
    # Sockets and the database: reading them goes round what `holdfast` allows.
    if re.search(re.escape(state) + r"/(?:run/|holdfast\.db\b)", text):
        return not (_only_lists(text) or _LOOKS_INTO.search(text))
    return bool(_CHANGES_MODE.search(text)) and not _only_quotes(text)


def _only_lists(text: str) -> bool:
    readings = read_acts(text).readings
    return bool(readings) and all(
        one.split(" ", 1)[0] in ("ls", "stat", "find", "du", "file", "test") for one in readings
    )


def _only_quotes(text: str) -> bool:
    """`grep kill docs` and the like start no such program."""
    acts: CommandActs = read_acts(text)
    quiet = ("grep", "rg", "git", "cat", "less", "man", "head", "tail", "ls")
    return (
        bool(acts.readings)
        and all(one.split(" ", 1)[0] in quiet for one in acts.readings)
        and not _kills_processes(text)
    )


def _kills_processes(text: str) -> bool:
    return bool(re.search(r"(?:^|[;&|(\n]|\bxargs\s|\bsudo\s)\s*(?:kill|pkill|killall|skill)\b", text))
