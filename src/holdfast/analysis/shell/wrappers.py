"""Programs that start another program: what is left when they are taken off."""

import re
from functools import cache

import msgspec

from holdfast.analysis.shell.syntax import UNKNOWN
from holdfast.core.data_files import load_data

ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*(?:%%|\(\))?=")


class Unwrapped(msgspec.Struct, kw_only=True):
    """The command inside of a wrapper."""

    words: list[str]
    name: str
    environment: dict[str, str] = {}
    directory: str = ""
    repeated: bool = False
    code_hidden: bool = False
    uncertain: bool = False
    """Whether it was started at all, and how it ended, does not show in the status."""


class _Wrapper(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `wrappers.toml` says of one; options stand in one text."""

    values: str = ""
    operands: int = 0
    nothing: str = ""
    directory: str = ""
    texts: str = ""
    waits: str = ""
    up_to_dashes: bool = False
    fetches: bool = False
    module: bool = False

    @property
    def runs_nothing(self) -> list[str]:
        return [*self.nothing.split(), "--help", "--version"]

    @property
    def takes_value(self) -> list[str]:
        return f"{self.values} {self.directory}".split()


@cache
def _wrappers() -> dict[str, _Wrapper]:
    return load_data(__file__, "wrappers", dict[str, _Wrapper])


@cache
def _programs() -> frozenset[str]:
    return frozenset(name.split()[0] for name in _wrappers())


@cache
def _modules() -> frozenset[str]:
    """Wrappers that are also called as `python -m NAME`."""
    profilers = (name.split()[0] for name, wrapper in _wrappers().items() if wrapper.module)
    return frozenset(("coverage", "poetry", "pipenv", "pdm", "hatch", "uv", "pipx", *profilers))


# Behind the name, so that the scope of `@vitest/cli` stays.
_VERSION = re.compile(r"(?<=\w)(?:@|==)[\w.^~*-]+$")
_BEGINS_AT_FLAG = frozenset(("nix develop", "nix shell", "gdb"))
# In words: `docker compose run`.
_LONGEST = 3
# Options with a value between the program and its verb: `docker compose -f FILE run`.
_GLOBAL_VALUES = {
    "docker": frozenset(
        ("-f", "--file", "-p", "--project-name", "-c", "--context", "--project-directory", "--profile")
    ),
    "uv": frozenset(("--directory", "--project", "--cache-dir", "--config-file", "--color")),
    "poetry": frozenset(("-C", "--directory", "-P", "--project")),
    "hatch": frozenset(("-e", "--env", "-p", "--project", "--config")),
    "bundle": frozenset(),
    "pnpm": frozenset(("-C", "--dir", "-F", "--filter")),
    "kubectl": frozenset(("-n", "--namespace", "--context", "--kubeconfig")),
}
_GLOBAL_VALUES["oc"] = _GLOBAL_VALUES["kubectl"]
_GLOBAL_VALUES["docker-compose"] = _GLOBAL_VALUES["docker"]
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
    matched, rest, directory = _match_prefix(name, words)
    if matched is None:
        return None
    unwrapped = _take_options(matched, _wrappers()[matched], rest)
    if unwrapped is not None and directory and not unwrapped.directory:
        unwrapped.directory = directory
    return unwrapped


def _match_prefix(name: str, words: list[str]) -> tuple[str | None, list[str], str]:
    """The longest known prefix, such as `docker compose run`, with options between its words skipped."""
    if name in _wrappers():
        return name, words[1:], ""
    prefix, at, directory = [name], 1, ""
    takes = _GLOBAL_VALUES.get(name, frozenset())
    while at < len(words) and len(prefix) < _LONGEST:
        word = words[at]
        if word.startswith("-"):
            flag, _, value = word.partition("=")
            if flag in _DIRECTORY_GLOBALS:
                directory = value or (words[at + 1] if at + 1 < len(words) else "")
            at += 2 if word in takes else 1
            continue
        prefix.append(word)
        at += 1
        if " ".join(prefix) in _wrappers():
            return " ".join(prefix), words[at:], directory
    return None, [], ""


def _take_options(name: str, spec: _Wrapper, rest: list[str]) -> Unwrapped | None:
    environment: dict[str, str] = {}
    directory, operands, at = "", spec.operands, 0
    runs_nothing, takes_value = spec.runs_nothing, spec.takes_value
    module = uncertain = False
    # Without such a flag the status is not the command's (systemd-run), or no command is run (nix develop).
    if spec.waits and not any(word.partition("=")[0] in spec.waits.split() for word in rest):
        return None
    if spec.up_to_dashes and "--" in rest:
        rest = rest[rest.index("--") :]
    while at < len(rest):
        word = rest[at]
        flag, equals, value = word.partition("=")
        if word == "--":
            at += 1
            break
        if flag in runs_nothing:
            return None
        # Here the flag marks where the command begins, whatever stands before it.
        if name in _BEGINS_AT_FLAG:
            at += 1
            if word in spec.waits.split():
                break
            continue
        if word in spec.texts.split():
            return Unwrapped(words=["sh", "-c", *rest[at + 1 : at + 2]], name=name)
        if name == "env" and flag in ("-S", "--split-string"):
            split = (value or " ".join(rest[at + 1 : at + 2])).split()
            # What `-S` splits may hold options and assignments again: all is read from the beginning.
            rest, at = split + rest[at + (1 if equals else 2) :], 0
            continue
        if word in ("-m", "--module") and (spec.module or name in ("uv run", "coverage run", "pdm run")):
            module = True
            at += 1
            break
        if name == "env" and word == "-":
            at += 1
        elif word.startswith("-") and len(word) > 1:
            if flag in spec.directory.split():
                directory = value if equals else (rest[at + 1] if at + 1 < len(rest) else "")
            at += 2 if flag in takes_value and not equals else 1
        elif name == "env" and word == UNKNOWN:
            # `env $(cat .env) pytest`: assignments, if all is well. Only what the command prints shows that it ran.
            uncertain = True
            at += 1
        elif name in ("env", "sudo", "doas", "cross-env") and ASSIGNMENT.match(word):
            environment[flag] = value
            at += 1
        elif operands and not (name == "faketime" and "-f" in rest[:at]):
            operands -= 1
            at += 1
        else:
            break
    inner = rest[at:]
    # The dotenv of Python wants `run` before the command, that of npm does not; both lead here.
    if name == "dotenv" and inner[:1] == ["run"]:
        inner = inner[1:]
    if inner and inner[0] == "--" and operands == 0:
        inner = inner[1:]
    if not inner:
        return None
    if spec.fetches:
        inner = [_VERSION.sub("", inner[0]), *inner[1:]]
    if module:
        inner = ["python", "-m", *inner]
    elif name == "coverage run" or spec.module:
        inner = ["python", *inner]
    elif name == "hatch run":
        # `hatch run ENV:COMMAND`; the command sees its environment's name in this variable.
        named, _, command = inner[0].rpartition(":")
        inner, environment = [command, *inner[1:]], {**environment, **({"HATCH_ENV": named} if named else {})}
    many = name == "retry" or (
        name == "xargs" and any(re.match(r"-[nPIL]|--max|--replace", word) for word in rest[:at])
    )
    return Unwrapped(
        words=inner, name=name, environment=environment, directory=directory, repeated=many, code_hidden=name == "xargs",
        uncertain=uncertain or spec.module,
    )  # fmt: skip


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


_SCRIPT_VALUES = frozenset("-I -O -B -T -m -o --log-in --log-out --log-io --log-timing --logging-format".split())


def _unwrap_script(words: list[str]) -> Unwrapped | None:
    """`script -qec CMD FILE`: what it prints is shown, but only with `-e` it ends as the command does."""
    text, returns, skip = "", False, False
    for at, word in enumerate(words[1:], 1):
        flag, equals, value = word.partition("=")
        if skip or not word.startswith("-"):
            skip = False
        elif flag in ("--version", "--help", "-V", "-h"):
            return None
        elif word.startswith("--"):
            returns = returns or flag == "--return"
            text = text or (value if equals else "".join(words[at + 1 : at + 2]) if flag == "--command" else "")
            skip = not equals and flag in ("--command", *_SCRIPT_VALUES)
        else:
            returns = returns or "e" in word
            if "c" in word:
                text = word.partition("c")[2] or "".join(words[at + 1 : at + 2])
                skip = word.endswith("c")
    if not text:
        return None
    return Unwrapped(words=["sh", "-c", text], name="script", uncertain=not returns)


_PARALLEL_VALUES = frozenset(
    "-j --jobs -P --max-procs -N -n --max-args --halt --delay --retries --timeout --joblog --results --tmpdir --colsep -C "
    "-I --tagstring --workdir --wd --shellquote --env --load --memfree --nice -S --sshlogin".split()
)
_PARALLEL_SEPARATORS = frozenset((":::", ":::+"))
MAX_JOBS = 12


def _unwrap_parallel(words: list[str]) -> Unwrapped | None:
    """`parallel CMD ::: a b`: its status is 0 when every job's was. Where the jobs come from a file they are not known."""
    at = 1
    while at < len(words) and words[at].startswith("-"):
        flag = words[at].partition("=")[0]
        if flag in ("--dry-run", "--dryrun", "--version", "--help", "-V", "-h", "--show-limits"):
            return None
        at += 2 if flag in _PARALLEL_VALUES and "=" not in words[at] else 1
    split = next((n for n in range(at, len(words)) if words[n] in _PARALLEL_SEPARATORS), len(words))
    template, arguments = words[at:split], words[split + 1 :]
    # Several `:::` lists are combined with one another, which is not spelled out here.
    if not arguments or len(arguments) > MAX_JOBS or any(word in _PARALLEL_SEPARATORS for word in arguments):
        return None
    jobs = [_parallel_job(" ".join(template), argument) for argument in arguments]
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
