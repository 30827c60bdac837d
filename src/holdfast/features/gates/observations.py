"""What is looked up when an event comes, before anything is decided: links, scripts, aliases, branches."""

# The only part of the gates that touches the disk in front of a hook. What it sees is written into the event's
# payload.

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from glob import iglob
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from holdfast.analysis.shell.command_effects import names_to_resolve, read_acts
from holdfast.analysis.shell.program_code import shell_of_code
from holdfast.analysis.shell.written_files import patched_files
from holdfast.core import git
from holdfast.core.caller import ORPHANS
from holdfast.core.event import Event
from holdfast.core.fingerprint import content_key, shared_fingerprinter
from holdfast.core.git_context import detached_head, locate
from holdfast.core.git_state import last_verb, read_refs
from holdfast.core.job import run_briefly
from holdfast.core.kinds import TOOL_ENDS, HookPayload, ToolPayload
from holdfast.core.lazy import lazy_pattern
from holdfast.features.gates.kinds.evidence import covered_globs
from holdfast.features.gates.looking import only_looks
from holdfast.features.gates.own_parts import read_script, real_path, touched_parts
from holdfast.features.gates.rules.in_force import any_in_force
from holdfast.features.gates.rules.self_proof import is_named_by
from holdfast.features.gates.rules.tool_commands import command_of, has_word, plain_name, tools
from holdfast.features.gates.rules.triggered import triggered_rules

if TYPE_CHECKING:
    from holdfast.features.gates.rules.triggers import Rule
    from holdfast.features.gates.settings import GateSettings

HEAD, HEAD_BRANCH, HEAD_VERB = "HEAD", "HEAD branch", "HEAD verb"
RUNNING = ("shell", "mcp", "other")
MOST_FILES = 100
# Names that one command may stand for, and how often what they stand for is read for further names.
MOST_NAMES, MEANING_DEPTH = 20, 4
# In seconds: what git may take in front of a hook, and what a look at the content may.
GIT_S = 0.3
CONTENT_S = 0.15
OBSERVED = frozenset(
    {"tool.started", "tool.finished", "tool.failed", "turn.ended", "session.started", "prompt.submitted"}
)
LONGEST_PATH = 4096
_HOME_VARIABLE = lazy_pattern(r"\$HOME\b|\$\{HOME\}")


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
    data.left_running = ORPHANS.observe(data.settings_at, ended)
    if isinstance(data, ToolPayload):
        _observe_tool(event, data, settings)
        return _brought_text(data, settings)
    return False


def _brought_text(data: ToolPayload, settings: "GateSettings") -> bool:
    """Whether the lookups added text that is not redacted yet."""
    verb = data.refs.get(HEAD_VERB, "")
    plain = not verb or (verb.isalpha() and len(verb) < 20)
    # Branches that a pattern matches are named by the repository.
    own_names = {HEAD, HEAD_BRANCH, HEAD_VERB, *settings.protected_branches}.issuperset(data.refs)
    return bool(data.meanings) or not plain or not own_names or not set(data.written).issubset(data.paths)


def _observe_tool(event: Event, data: ToolPayload, settings: "GateSettings") -> None:
    root = data.worktree or event.project
    data.written = resolve_links(data.paths) if data.action == "edit" else data.written
    if data.action in RUNNING and (command := command_of(event)):
        _observe_command(data, command, root)
    if data.action in ("mcp", "other") and writes_files(event.tool, data.input):
        data.written += resolve_links([*data.paths, *_named_files(data.input, data.cwd or root)])
    data.touches = touched_parts(event, data)
    if data.repo:
        data.lands_on = _branches_written(data, root, settings)
        if not data.content and _wants_content(event, data, settings):
            data.content = look_at_content(root, settings)
        data.refs = _observe_refs(data, settings)


def _branches_written(data: ToolPayload, root: str, settings: "GateSettings") -> list[str]:
    """Protected branches whose files the call writes, although the session is on another one: those of other worktrees,
    and those at whose tip a detached HEAD is."""
    if not data.written or not settings.protected_branches:
        return []
    found = []
    for folder in dict.fromkeys(os.path.dirname(path) for path in data.written[:MOST_FILES]):
        place = locate(folder) if folder != root and not folder.startswith(f"{root}/") else {}
        is_other = bool(place) and place["repo"] == data.repo and place["root"] != root
        if is_other and any(fnmatchcase(place["branch"], glob) for glob in settings.protected_branches):
            found.append(place["branch"])
    if not data.branch and (head := detached_head(root)):
        refs = read_refs(data.repo, settings.protected_branches)
        found += [name for name, commit in refs.items() if commit == head]
    return list(dict.fromkeys(filter(None, found)))


def _wants_content(event: Event, data: ToolPayload, settings: "GateSettings") -> bool:
    """Before what needs proof, after a command that may be proof, and after one that may have changed files which no
    command may change unseen."""
    if event.kind == "tool.started":
        return any(rule.kind.is_proven and rule.at_tool for rule in triggered_rules(settings, event))
    if data.action == "edit" or (data.action == "shell" and only_looks(data.command)):
        return False
    guarded = any(fnmatchcase(data.branch, glob) for glob in settings.protected_branches)
    return guarded or any(_concerns_content(rule, data) for rule in settings.rules)


def _concerns_content(rule: "Rule", data: ToolPayload) -> bool:
    if data.action == "shell" and is_named_by(rule, data.command):
        return True
    return bool(rule.spec.paths) and rule.at_tool and not rule.kind.is_proven


def _observe_command(data: ToolPayload, command: str, root: str) -> None:
    cwd = data.cwd or root
    home = os.path.expanduser("~")
    text = _HOME_VARIABLE.sub(lambda _: home, command) if "HOME" in command else command
    data.meanings = _resolve_names(names_to_resolve(text, cwd), cwd)
    acts = read_acts(text, cwd, data.meanings)
    data.written = without_ignored(resolve_links(_absolute_paths(acts.writes, cwd, home)), root)


def _absolute_paths(names: Iterable[str], cwd: str, home: str) -> list[str]:
    """Expands `~`, also after it was joined with a folder."""
    paths = []
    for name in names:
        at = name.find("~/")
        name = home + name[at + 1 :] if at == 0 or (at > 0 and name[at - 1] == "/") else name
        paths.append(os.path.normpath(os.path.join(cwd, name)))
    return paths


def resolve_links(paths: Sequence[str]) -> list[str]:
    """The real targets of writes: `cfg/prod.tf` may link to `infra/prod.tf`."""
    named = [name for path in paths[:MOST_FILES] for name in _matching_files(path)]
    return list(dict.fromkeys(map(real_path, named[:MOST_FILES])))


def _matching_files(path: str) -> list[str]:
    """Expands a pattern; without a match it is the name itself."""
    # `/**` is our mark for a whole folder.
    if path.endswith("/**") or not re.search(r"[*?\[]", path):
        return [path]
    return list(islice(iglob(path), MOST_NAMES)) or [path]


_IGNORED: dict[tuple[str, str, tuple[int, ...]], bool] = {}
"""Root, file and when its ignore files changed → what git said."""
MOST_IGNORED = 2_000


def without_ignored(paths: list[str], root: str) -> list[str]:
    """Logs and build results that git ignores are no edits. Where git does not answer nothing is left out."""
    # A name with a newline or a star cannot be asked of git as one file.
    inside = [path for path in paths if path.startswith(f"{root}/") and not re.search(r"[\n*]", path)]
    keys = {path: (root, path, _ignore_stamp(root, path)) for path in inside}
    _learn_ignored({path: key for path, key in keys.items() if key not in _IGNORED}, root)
    return [path for path in paths if path not in keys or not _IGNORED.get(keys[path])]


def _learn_ignored(unknown: dict[str, tuple[str, str, tuple[int, ...]]], root: str) -> None:
    answered = _ask_ignored(list(unknown), root) if unknown else None
    if answered is None:
        return
    if len(_IGNORED) > MOST_IGNORED:
        # Cleared rather than ordered: the answers are found again with one call of git.
        _IGNORED.clear()
    _IGNORED.update({key: path in answered for path, key in unknown.items()})


def _ignore_stamp(root: str, path: str) -> tuple[int, ...]:
    """When the ignore files above this path were changed."""
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
    name = plain_name(tool)
    if has_word(name, tools().writes) or has_word(name, tools().reads):
        return has_word(name, tools().writes)
    keys = [key for key, _ in _strings_in(tool_input)]
    return all(any(re.search(kind, key) for key in keys) for kind in (tools().content_key, tools().path_key))


def _named_files(tool_input: dict[str, Any], cwd: str) -> list[str]:
    """Files that a tool's input names: under a key for paths at any depth, as a key, and in a patch."""
    names = list(_path_keys(tool_input))
    for key, value in _strings_in(tool_input):
        if "+++" in value or "*** " in value:
            names += patched_files(value)
        elif re.search(tools().path_key, key) and "\n" not in value:
            names.append(value)
    plain = (name for name in map(_without_scheme, names) if "://" not in name and len(name) <= LONGEST_PATH)
    return [os.path.normpath(os.path.join(cwd, name)) for name in islice(plain, MOST_FILES)]


def _without_scheme(name: str) -> str:
    return unquote(name.removeprefix("file://")) if name.startswith("file://") else name


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
    """Resolves names recursively: a recipe may run a script that runs a recipe."""
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
        return shell_of_code(read_script(os.path.join(cwd, rest)), rest.rpartition(".")[2])
    if kind == "patch":
        # As shell text that writes these files, so that it is read like any other command.
        return "\n".join(f": > {shlex.quote(name)}" for name in patched_files(read_script(os.path.join(cwd, rest))))
    from holdfast.analysis.shell.recipes import read_recipe

    runner, folder, target, *more = rest.split("\0")
    return read_recipe(runner, target, os.path.join(cwd, folder), read_script, "".join(more))


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
    text = read_script(path)
    first = text.partition("\n")[0]
    if "\0" in text:
        return ""
    is_shell = not first.startswith("#!") or re.search(r"\b(?:ba|da|z|k)?sh\b", first)
    return text if is_shell else shell_of_code(text)


def _observe_refs(data: ToolPayload, settings: "GateSettings") -> dict[str, str]:
    """Where the branches are that rules are about, and what git itself last noted of the one checked out."""
    # Without an act that could move a branch the refs need not be read.
    if data.action not in ("shell", "mcp") or (data.command and only_looks(data.command)):
        return data.refs
    # Always includes the branch, to show that refs were read.
    refs = {**read_refs(data.repo, settings.protected_branches), HEAD_BRANCH: data.branch}
    if data.branch and settings.index.names_commits:
        head = read_refs(data.repo, (data.branch,)).get(data.branch, "")
        refs |= {HEAD: head, HEAD_BRANCH: data.branch, HEAD_VERB: last_verb(data.repo)} if head else {}
    return refs
