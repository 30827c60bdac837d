"""Finds what may have bent a test run: its configuration, environment and program, compared with before the session."""

import configparser
import fnmatch
import hashlib
import json
import os
import posixpath
import shutil
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import msgspec

from holdfast.core import git
from holdfast.core.checks import Check, CheckKind, Verdict, is_untested
from holdfast.core.data_files import load_data
from holdfast.core.fingerprint import read_head
from holdfast.core.job import run_briefly
from holdfast.features.checks.git_watch import Worktree

LOOK_S = 0.3
MOST_FOLDERS, MOST_NAMED = 4_000, 12
MOST_BYTES = 1 << 20
MOST_MODULES = 400


class _Data(msgspec.Struct):
    variables: str
    startup: list[str]
    passed_over: list[str]
    files: str
    parts: dict[str, list[str]]


@cache
def _data() -> _Data:
    return load_data(__file__, "bending", _Data)


@cache
def runner_variables() -> frozenset[str]:
    return frozenset(_data().variables.split())


def variables_set(environment: Mapping[str, str]) -> list[str]:
    """The variables that a command sets itself and that runners read."""
    return [f"{name} is set in the command" for name in environment if name in runner_variables()]


class Before(msgspec.Struct, frozen=True):
    """The state that a run is compared with: when the agent started, and the commit checked out then."""

    at: int
    commit: str
    environment: Mapping[str, str] = {}
    """The environment that the agent started with."""


def add_bends(checks: list[Check], worktree: Worktree, before: Before, *, undecided: bool = False) -> list[Check]:
    """Complete the checks that passed, or may turn out to; the others keep only what a reader needs."""
    proving = (Verdict.PASSED, Verdict.UNKNOWN) if undecided else (Verdict.PASSED,)
    if not any(check.kind is CheckKind.TEST and check.verdict in proving for check in checks):
        return [msgspec.structs.replace(check, ran_with={}) for check in checks]
    deadline = time.monotonic() + LOOK_S
    changed = [*_changed_configuration(worktree, before, deadline), *_hidden_files(worktree, before, deadline)]
    return [
        _with_bends(check, worktree, before, changed)
        if check.kind is CheckKind.TEST and check.verdict in proving
        else msgspec.structs.replace(check, ran_with={})
        for check in checks
    ]


def _with_bends(check: Check, worktree: Worktree, before: Before, changed: list[str]) -> Check:
    asked, own = check.ran_with, before.environment.get("PATH", "")
    search_path = asked.get("path", "").replace("${PATH}", own).replace("$PATH", own) or own
    words = (asked.get("program", ""), asked.get("cwd", ""), worktree.root, asked.get("launcher", ""))
    program = find_program(*words, search_path) if words[0] else ""
    bent = [*check.bent, *changed, *_changed_program(check.runner, program, before)]
    named = {"program": f"{program} {_file_hash(program)}"} if program else {}
    ran_with = {**named, **_hashed_environment(before.environment)}
    return msgspec.structs.replace(check, bent=list(dict.fromkeys(bent))[:MOST_NAMED], ran_with=ran_with)


def commit_at(worktree: Worktree, at: int) -> str:
    """The commit that HEAD named at that time, according to its reflog; the present one if that says nothing."""
    commit = ""
    for line in read_from_end(os.path.join(worktree.own, "logs", "HEAD")).splitlines():
        head, _, _ = line.partition(b"\t")
        words = head.split()
        # The last words before the message are the time and the zone.
        if len(words) > 3 and words[-2].isdigit():
            if int(words[-2]) * 1000 > at:
                # A repository that is younger than the agent begins with its first commit, or its clone.
                first = words[1] if not words[0].strip(b"0") else words[0]
                return commit or first.decode("ascii", "replace")
            commit = words[1].decode("ascii", "replace")
    return commit or worktree.head


def read_from_end(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - MOST_BYTES))
            return file.read(MOST_BYTES)
    except OSError:
        return b""


# ── configuration ────────────────────────────────────────────────────────────────────────────────────────────────────


def _changed_configuration(worktree: Worktree, before: Before, deadline: float) -> Iterator[str]:
    """Files written since then whose relevant content is not that of the commit."""
    recent = [path for path in _configuration_files(worktree.root, deadline) if _changed_at(path) > before.at]
    names = [posixpath.relpath(path, worktree.root) for path in recent]
    earlier = _committed(worktree.root, before.commit, names, deadline) if names else {}
    for path, name in zip(recent, names, strict=True):
        if name not in earlier:
            yield f"{name} is new"
        elif relevant_part(name, read_head(path, MOST_BYTES)) != relevant_part(name, earlier[name]):
            yield f"{name} was changed"
    if time.monotonic() > deadline:
        yield "not all of the configuration could be looked at in time"


def _hidden_files(worktree: Worktree, before: Before, deadline: float) -> Iterator[str]:
    """Source files that only the repository's private exclude file hides from git, if that file was written since."""
    if _changed_at(os.path.join(worktree.shared, "info", "exclude")) <= before.at:
        return
    listed = [
        _ask_git(worktree.root, ("ls-files", "-z", "--others", *how), b"", deadline)
        for how in (("--exclude-per-directory=.gitignore",), ("--exclude-standard",))
    ]
    if None in listed:
        return
    every, visible = (set((out or b"").split(b"\0")) for out in listed)
    for name in sorted(os.fsdecode(name) for name in every - visible):
        path = os.path.join(worktree.root, name)
        if not is_untested(name) and _passes(name) and _changed_at(path) > before.at:
            yield f"{name} is hidden from git by .git/info/exclude"


def _passes(name: str) -> bool:
    return not any(part in _data().passed_over for part in name.split("/")[:-1])


def _configuration_files(root: str, deadline: float) -> Iterator[str]:
    left = MOST_FOLDERS
    waiting = [root]
    while waiting and left and time.monotonic() < deadline:
        left -= 1
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:
            continue
        if any(entry.name == "pyvenv.cfg" for entry in entries):
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                waiting += [] if entry.name in _data().passed_over else [entry.path]
            elif is_configuration(posixpath.relpath(entry.path, root)):
                yield entry.path


@cache
def _patterns() -> tuple[frozenset[str], tuple[str, ...]]:
    words = _data().files.split()
    return frozenset(w for w in words if "*" not in w) | _data().parts.keys(), tuple(w for w in words if "*" in w)


def is_configuration(path: str) -> bool:
    plain, globs = _patterns()
    name = posixpath.basename(path)
    last_two = "/".join(path.split("/")[-2:])
    return name in plain or last_two in plain or any(fnmatch.fnmatchcase(name, glob) for glob in globs)


def relevant_part(path: str, content: bytes) -> object:
    """What of a file configures tests; the whole content if the file cannot be read as its format."""
    name = posixpath.basename(path)
    wanted = _data().parts.get(name)
    if wanted is None:
        return content
    try:
        parsed = _parse(name, content.decode())
    except (ValueError, configparser.Error, RecursionError):
        return content
    return [_at(parsed, part) for part in wanted]


def _parse(name: str, text: str) -> dict[str, Any]:
    if name.endswith(".toml"):
        return tomllib.loads(text)
    if name.endswith(".json"):
        parsed = json.loads(text)
        return parsed if isinstance(parsed, dict) else {"": parsed}
    ini = configparser.RawConfigParser(strict=False, allow_no_value=True)
    ini.read_string(text)
    # `testenv:py311` belongs to `testenv`.
    sections = {section: dict(ini[section]) for section in ini.sections()}
    return {
        part: {n: v for n, v in sections.items() if n == part or n.startswith(f"{part}:")}
        for part in _data().parts[name]
    }


def _at(parsed: Any, part: str) -> Any:
    if isinstance(parsed, dict) and part not in parsed and "." in part:
        first, _, rest = part.partition(".")
        return _at(parsed.get(first), rest)
    return parsed.get(part) if isinstance(parsed, dict) else None


def _committed(root: str, commit: str, names: list[str], deadline: float) -> dict[str, bytes]:
    """The content of these files in that commit; those that it does not have are absent."""
    asked = "".join(f"{commit}:{name}\n" for name in names if "\n" not in name)
    out = _ask_git(root, ("cat-file", "--batch"), os.fsencode(asked), deadline) if commit else None
    return dict(_parse_batch(out, names)) if out else {}


def _ask_git(root: str, words: tuple[str, ...], stdin: bytes, deadline: float) -> bytes | None:
    left = max(0.05, deadline - time.monotonic())
    environment = git.git_environment(os.environ)
    ran = run_briefly(git.git_argv(*words), cwd=root, env=environment, stdin=stdin, timeout=left)
    return ran.out if ran.code == 0 and not ran.timed_out else None


def _parse_batch(out: bytes, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Answers are `ID TYPE SIZE`, a line break, the content and a line break, or a line that ends with `missing`."""
    at = 0
    for name in names:
        end = out.find(b"\n", at)
        words = out[at:end].split()
        at = end + 1
        if len(words) == 3 and words[2].isdigit():
            size = int(words[2])
            yield name, out[at : at + size]
            at += size + 1


# ── program ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def find_program(word: str, cwd: str, root: str, launcher: str, search_path: str) -> str:
    """The file that a command's first word names; empty if it is not found. `launcher`: `uv`, `poetry` and their like."""
    if "/" in word:
        found = posixpath.normpath(posixpath.join(cwd, os.path.expanduser(word)))
        return found if os.path.isfile(found) else ""
    folders = [posixpath.join(cwd, folder) for folder in search_path.split(":") if folder]
    own = [posixpath.join(root, ".venv", "bin")] if launcher else []
    return shutil.which(word, path=":".join([*own, *folders])) or ""


def _changed_program(runner: str, program: str, before: Before) -> Iterator[str]:
    if not program:
        return
    if _changed_at(program) > before.at:
        yield f"{program} was written after the agent started"
    for folder in _module_folders(program):
        yield from _changed_modules(runner, folder, before)


def _module_folders(program: str) -> Iterator[str]:
    """Where the Python that runs this program has its packages."""
    first = read_head(program, 200).partition(b"\n")[0]
    python = (
        os.fsdecode(first.removeprefix(b"#!").strip()) if first.startswith(b"#!") and b"python" in first else program
    )
    if "python" not in posixpath.basename(python):
        return
    library = posixpath.join(posixpath.dirname(posixpath.dirname(python)), "lib")
    try:
        versions = [name for name in os.listdir(library) if name.startswith("python3")]
    except OSError:
        return
    yield from (posixpath.join(library, name, "site-packages") for name in versions)


def _changed_modules(runner: str, folder: str, before: Before) -> Iterator[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return
    startup = [name for name in names if name in _data().startup or name.endswith(".pth")]
    yield from (
        f"{name} in {folder} is new" for name in startup if _changed_at(posixpath.join(folder, name)) > before.at
    )
    packages = [name for name in (runner, f"_{runner}") if name in names]
    modules = (path for name in packages for path in _modules_in(posixpath.join(folder, name)))
    if any(_changed_at(path) > before.at for path in modules):
        yield f"{runner} was installed or changed after the agent started"


def _modules_in(package: str) -> Iterator[str]:
    left = MOST_MODULES
    for folder, _, files in os.walk(package):
        for name in files:
            if name.endswith(".py") and left:
                left -= 1
                yield posixpath.join(folder, name)


def _changed_at(path: str) -> int:
    """In ms. A program can set back mtime but not ctime."""
    try:
        return os.stat(path).st_ctime_ns // 1_000_000
    except OSError:
        return 0


def _file_hash(path: str) -> str:
    return hashlib.sha256(read_head(path, MOST_BYTES)).hexdigest()[:16]


def _hashed_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """By name and hash: values may be secrets."""
    names = sorted(runner_variables() & environment.keys())
    return {f"env {name}": hashlib.sha256(os.fsencode(environment[name])).hexdigest()[:16] for name in names}
