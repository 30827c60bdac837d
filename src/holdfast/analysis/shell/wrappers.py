"""Programs that start another program: what is left when they are taken off."""

import re
from collections.abc import Mapping
from functools import cache

import msgspec

from holdfast.analysis.shell.syntax import UNKNOWN
from holdfast.analysis.shell.word_lists import by_single_name
from holdfast.core.data_files import load_data

ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*(?:%%|\(\))?=")


class Unwrapped(msgspec.Struct, kw_only=True):
    """The command inside of a wrapper."""

    words: list[str]
    name: str
    environment: Mapping[str, str] = {}
    directory: str = ""
    packages: tuple[str, ...] = ()
    """The packages of a workspace that it runs the command in."""
    repeated: bool = False
    code_hidden: bool = False
    uncertain: bool = False
    """Whether it was started at all, and how it ended, does not show in the status."""


class _Wrapper(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of `wrappers.toml`, which says what the fields mean."""

    values: str = ""
    operands: int = 0
    instead: str = ""
    nothing: str = ""
    directory: str = ""
    packages: str = ""
    texts: str = ""
    splits: str = ""
    waits: str = ""
    begins: bool = False
    up_to_dashes: bool = False
    assigns: bool = False
    fetches: bool = False
    takes_module: bool = False
    module: bool = False
    python: bool = False
    repeats: str | None = None
    hides_code: bool = False
    skips: str = ""


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    wrappers: dict[str, _Wrapper]
    globals: dict[str, str]


@cache
def _table() -> _Table:
    table = load_data(__file__, "wrappers", _Table)
    return _Table(table.wrappers, by_single_name(table.globals))


@cache
def _programs() -> frozenset[str]:
    return frozenset(name.split()[0] for name in _table().wrappers)


@cache
def _modules() -> frozenset[str]:
    """Wrappers that are also called as `python -m NAME`."""
    profilers = (name.split()[0] for name, wrapper in _table().wrappers.items() if wrapper.module)
    return frozenset(("coverage", "poetry", "pipenv", "pdm", "hatch", "uv", "pipx", *profilers))


# Behind the name, so that the scope of `@vitest/cli` stays.
_VERSION = re.compile(r"(?<=\w)(?:@|==)[\w.^~*-]+$")
_HELP = frozenset(("--help", "--version"))
# In words: `docker compose run`.
_LONGEST = 3
_DIRECTORY_GLOBALS = frozenset(("--directory", "-C", "--dir"))


def unwrap_command(words: list[str]) -> Unwrapped | None:
    """The command that a wrapper starts; None when the first word is no wrapper or starts nothing."""
    name = words[0].rpartition("/")[2]
    if name in _LAUNCHERS:
        return _LAUNCHERS[name](words)
    # `python -m coverage run ...` is `coverage run ...`.
    if words[1:2] == ["-m"] and len(words) > 3 and words[2] in _modules():
        words = [words[2], *words[3:]]
        name = words[0]
    if name not in _programs():
        return None
    matched, rest, skipped = _match_prefix(name, words)
    unwrapped = _Options(matched, rest).unwrap() if matched else None
    if unwrapped is not None:
        directories = [value for flag, value in skipped if flag in _DIRECTORY_GLOBALS]
        unwrapped.directory = unwrapped.directory or "".join(directories[-1:])
        named = _table().wrappers[matched].packages.split()
        unwrapped.packages = (*unwrapped.packages, *(value for flag, value in skipped if flag in named))
    return unwrapped


def _match_prefix(name: str, words: list[str]) -> tuple[str, list[str], list[tuple[str, str]]]:
    """The longest known prefix, such as `docker compose run`, and the options between its words."""
    skipped: list[tuple[str, str]] = []
    if name in _table().wrappers:
        return name, words[1:], skipped
    prefix, at = name, 1
    takes_value = _table().globals.get(name, "").split()
    while at < len(words) and len(prefix.split()) < _LONGEST:
        flag, _, value = words[at].partition("=")
        if flag.startswith("-"):
            skipped.append((flag, value or "".join(words[at + 1 : at + 2])))
            at += 2 if words[at] in takes_value else 1
            continue
        prefix, at = f"{prefix} {words[at]}", at + 1
        if prefix in _table().wrappers:
            return prefix, words[at:], skipped
    return "", [], []


class _Nothing(Exception):
    """The wrapper starts no command."""


class _Options:
    """Reads the words of a wrapper up to where its command begins."""

    def __init__(self, name: str, rest: list[str]) -> None:
        self.name, self.rest, self.spec = name, rest, _table().wrappers[name]
        self.environment: dict[str, str] = {}
        self.packages: list[str] = []
        self.directory, self.operands = "", self.spec.operands
        self.module = self.uncertain = False

    def unwrap(self) -> Unwrapped | None:
        waits, rest = self.spec.waits.split(), self.rest
        waiting = [at for at, word in enumerate(rest) if word.partition("=")[0] in waits]
        # Without such a flag the status is not the command's (systemd-run), or no command is run (nix develop).
        if waits and not waiting:
            return None
        try:
            if self.spec.begins:
                # Where the command begins, whatever comes before it.
                at = next((at for at, word in enumerate(rest) if word == "--" or word in waits), len(rest))
                self._refuse_nothing(rest[:at])
                at += 1
            else:
                at = self._command_start()
        except _Nothing:
            return None
        return self._unwrapped(self.rest[at:], self.rest[:at])

    def _refuse_nothing(self, words: list[str]) -> None:
        flags = {word.partition("=")[0] for word in words}
        if not _HELP.isdisjoint(flags) or not flags.isdisjoint(self.spec.nothing.split()):
            raise _Nothing

    def _command_start(self) -> int:
        at = self.rest.index("--") if self.spec.up_to_dashes and "--" in self.rest else 0
        while at < len(self.rest):
            word = self.rest[at]
            if word == "--":
                return at + 1
            self._refuse_nothing([word])
            if word in self.spec.texts.split():
                self.rest = ["sh", "-c", *self.rest[at + 1 : at + 2]]
                return 0
            if word in ("-m", "--module") and (self.spec.module or self.spec.takes_module):
                self.module = True
                return at + 1
            taken = self._split(at) if self._is_split(word) else self._own_words(at, word)
            if not taken:
                return at
            at += taken
        return at

    def _is_split(self, word: str) -> bool:
        return word.partition("=")[0] in self.spec.splits.split()

    def _split(self, at: int) -> int:
        """`env -S 'A=1 pytest'`: what it splits may hold options again, so all is read from its beginning."""
        _, equals, value = self.rest[at].partition("=")
        behind = at + (1 if equals else 2)
        self.rest[at:behind] = ["-", *(value or "".join(self.rest[at + 1 : at + 2])).split()]
        return 1

    def _own_words(self, at: int, word: str) -> int:
        """How many words of its own begin here; 0 where the command does."""
        spec = self.spec
        if word.startswith("-") and (len(word) > 1 or spec.splits):
            return self._take_option(at, word)
        # `env $(cat .env) pytest`: assignments, if all is well. Only what the command prints shows that it ran.
        if spec.splits and word == UNKNOWN:
            self.uncertain = True
        elif spec.assigns and ASSIGNMENT.match(word):
            name, _, value = word.partition("=")
            self.environment[name] = value
        elif self.operands and (spec.instead or "-") not in self.rest[:at]:
            self.operands -= 1
        else:
            return 0
        return 1

    def _take_option(self, at: int, word: str) -> int:
        flag, equals, value = word.partition("=")
        value = value if equals else "".join(self.rest[at + 1 : at + 2])
        if flag in self.spec.directory.split():
            self.directory = value
        if flag in self.spec.packages.split():
            self.packages.append(value)
        return 2 if word in f"{self.spec.values} {self.spec.directory} {self.spec.packages}".split() else 1

    def _unwrapped(self, inner: list[str], own: list[str]) -> Unwrapped | None:
        spec = self.spec
        inner = self._plain_command(inner)
        if not inner:
            return None
        if self.name == "hatch run" and not self.module:
            # `hatch run ENV:COMMAND`; the command sees its environment's name in this variable.
            named, _, inner[0] = inner[0].rpartition(":")
            self.environment |= {"HATCH_ENV": named} if named else {}
        python = ["python", "-m"] if self.module else ["python"] if spec.python or spec.module else []
        return Unwrapped(
            words=python + inner, name=self.name, environment=self.environment, directory=self.directory,
            packages=tuple(self.packages), code_hidden=spec.hides_code,
            repeated=spec.repeats is not None and any(re.match(spec.repeats, word) for word in ["", *own]),
            uncertain=self.uncertain or spec.module,
        )  # fmt: skip

    def _plain_command(self, inner: list[str]) -> list[str]:
        """Without a word and a separator that may stand before it, and without the version of a package."""
        spec = self.spec
        inner = inner[1:] if spec.skips and inner[:1] == [spec.skips] else inner
        inner = inner[1:] if inner[:1] == ["--"] and self.operands == 0 else inner
        return [_VERSION.sub("", word) for word in inner[:1]] + inner[1:] if spec.fetches else list(inner)


def _unwrap_find(words: list[str]) -> Unwrapped | None:
    for at, word in enumerate(words):
        if word in ("-exec", "-execdir", "-ok", "-okdir"):
            inner = words[at + 1 :]
            end = next((n for n, w in enumerate(inner) if w in (";", "+")), len(inner))
            if not inner[:end]:
                return None
            # find may match no file, and mostly ends with 0 whatever the command returned.
            return Unwrapped(words=inner[:end], name="find", repeated=True, code_hidden=True, uncertain=True)
    return None


def _unwrap_script(words: list[str]) -> Unwrapped | None:
    """`script -qec CMD FILE`: what it prints is shown, but only with `-e` it ends as the command does."""
    options = _script_options(words)
    text = options.get("--command", "")
    if not text or not options.keys().isdisjoint(("--version", "--help", "-V", "-h")):
        return None
    return Unwrapped(words=["sh", "-c", text], name="script", uncertain="--return" not in options)


def _script_options(words: list[str]) -> dict[str, str]:
    """Each option by its long name, with its value."""
    options: dict[str, str] = {}
    takes_value, at = _table().globals["script"].split(), 1
    while at < len(words):
        flag, equals, value = words[at].partition("=")
        if letters := _SCRIPT_LETTERS.match(words[at]):
            flag, equals, value = "--command" if letters[2] else flag, letters[3], letters[3]
            options |= {"--return": ""} if "e" in letters[1] else {}
        if not equals and (flag == "--command" or flag in takes_value):
            at += 1
            value = "".join(words[at : at + 1])
        options.setdefault(flag, value)
        at += 1
    return options


# `-qec`, `-qecpytest`: the letters before `c`, and the text after it.
_SCRIPT_LETTERS = re.compile(r"^-(?!-)([^c]*)(c?)(.*)$", re.S)
_PARALLEL_NOTHING = frozenset(("--dry-run", "--dryrun", "--version", "--help", "-V", "-h", "--show-limits"))
MAX_JOBS = 12


def _unwrap_parallel(words: list[str]) -> Unwrapped | None:
    """`parallel CMD ::: a b`: its status is 0 when every job's was. Where the jobs come from a file they are not known."""
    at, takes_value = 1, _table().globals["parallel"].split()
    while at < len(words) and words[at].startswith("-"):
        if words[at].partition("=")[0] in _PARALLEL_NOTHING:
            return None
        at += 2 if words[at] in takes_value else 1
    # Several `:::` lists are combined with one another, which is not spelled out here.
    template, *lists = re.split(r"(?:^|\0):::\+?(?:\0|$)", "\0".join(words[at:]))
    arguments = lists[0].split("\0") if len(lists) == 1 and lists[0] else []
    if not 0 < len(arguments) <= MAX_JOBS:
        return None
    jobs = [_parallel_job(template.replace("\0", " "), argument) for argument in arguments]
    # Joined by `&&`: every job succeeded exactly when the status is 0.
    return Unwrapped(words=["sh", "-c", " && ".join(jobs)], name="parallel", code_hidden=True)


def _parallel_job(template: str, argument: str) -> str:
    if not template:
        return argument
    return template.replace("{}", argument) if "{}" in template else f"{template} {argument}"


# Everything but plain words has a meaning of its own in these shells.
_PLAIN_TEXT = re.compile(r"[\w .,:=/\\+-]+")
_TEXT_FLAGS = frozenset(("/c", "-c", "-command"))
_VALUE_FLAGS = frozenset(("-executionpolicy", "-ep", "-workingdirectory", "-wd"))


def _unwrap_windows_shell(words: list[str]) -> Unwrapped | None:
    """`pwsh -NoProfile -Command "pytest -q"`, `cmd /c pytest -q`: a single program in plain words."""
    at = 1
    while at < len(words) and words[at].lower() not in _TEXT_FLAGS:
        at += 2 if words[at].lower() in _VALUE_FLAGS else 1
    text = " ".join(words[at + 1 :])
    if not _PLAIN_TEXT.fullmatch(text):
        return None
    # PowerShell tells that the program failed, not with which status.
    return Unwrapped(words=text.split(), name="windows shell", code_hidden=True)


_LAUNCHERS = {
    "find": _unwrap_find,
    "script": _unwrap_script,
    "parallel": _unwrap_parallel,
    **dict.fromkeys(("cmd", "cmd.exe", "pwsh", "pwsh.exe", "powershell", "powershell.exe"), _unwrap_windows_shell),
}
