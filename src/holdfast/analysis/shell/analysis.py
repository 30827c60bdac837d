"""Reads what a command did from its text, exit status and output."""

import re
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from itertools import chain, dropwhile, repeat, takewhile

import msgspec

from holdfast.analysis.shell.execute import Executor, ReadFile
from holdfast.analysis.shell.flow import FAILED, TERMINAL, Invocation, OutputPiece, Path, Pieces, Status, Streams
from holdfast.analysis.shell.parse import ShellTooLarge, ShellUnreadable, parse_command
from holdfast.analysis.shell.programs import finish_shell
from holdfast.analysis.shell.syntax import UNKNOWN

KILLED = frozenset((129, 130, 131, 134, 135, 137, 139, 141, 143))
"""128 + signal: the shell itself may have been killed."""
MAX_TAIL = 2_000
# How many commands are cached, and the longest that is, in characters.
MOST_KEPT, LONGEST_KEPT = 256, 8_000
MAX_UNCUT = 3_000
"""Agents cut longer output."""


class Ran(StrEnum):
    YES = "yes"
    MAYBE = "maybe"
    NO = "no"


class ShellCommand(msgspec.Struct):
    """One program of the command, with what the exit status shows about it."""

    invocation: Invocation
    ran: Ran
    exit_code: int | None
    """Its own exit code where it is known; -1 means that it failed with a code that is not known."""
    pending: bool = False
    """Started in the background and not waited for."""
    interrupted: bool = False
    """The shell may have been ended by a signal before it was done."""
    visible: Pieces = ()
    """The pieces of its output that reached the terminal."""

    @property
    def status_visible(self) -> bool:
        return self.exit_code is not None

    @property
    def words(self) -> list[str]:
        return self.invocation.words


class Analysis(msgspec.Struct):
    commands: list[ShellCommand] = []
    terminal: Pieces = ()
    """What reached the terminal, in order, on the paths that fit."""
    defined: tuple[str, ...] = ()
    problem: str = ""
    """Why the command was not followed; else empty."""
    paths: list[Path] = []
    """The paths that fit exit status and output."""
    killed: bool = False
    sourced: tuple[str, ...] = ()
    """Files the shell sources (`. FILE`); not followed here."""
    run_later: tuple[str, ...] = ()
    """Shell texts of traps and aliases, not followed here."""
    redirected: tuple[tuple[int, str], ...] = ()
    """How many programs came before the redirection, and its file."""
    reads_files: bool = False
    """Repository files decide what it does, so the result is not cached by text."""

    def narrow(self, ran: set[int], succeeded: dict[int, bool]) -> bool:
        """Keep the paths on which these invocations ran and ended like this. True if that excludes any."""
        fitting = [
            path for path in self.paths if all(index in path.ran for index in ran) and _path_agrees(path, succeeded)
        ]
        if not fitting or len(fitting) == len(self.paths):
            return False
        self.paths, self.terminal = fitting, _terminal_output(fitting)
        for command in self.commands:
            _update_command(command, fitting, self.killed)
        return True


class _Walk(msgspec.Struct, frozen=True):
    """The paths a command can take, whatever its end. Cached and shared; do not change it."""

    invocations: list[Invocation] = []
    paths: list[Path] = []
    problem: str = ""
    sourced: tuple[str, ...] = ()
    run_later: tuple[str, ...] = ()
    redirected: tuple[tuple[int, str], ...] = ()
    reads_files: bool = False


def analyse_command(
    text: str,
    exit_code: int | None = None,
    stdout: str | None = "",
    stderr: str | None = "",
    *,
    cwd: str | None = None,
    read_file: ReadFile | None = None,
) -> Analysis:
    """Never raises: what cannot be followed is returned as a problem. Pass None for output that was not reported."""
    walk = _walk_command(text, cwd or ".", _cd_errors(text, stdout, stderr), read_file)
    if walk.problem:
        return Analysis(problem=walk.problem)
    return _conclude_analysis(walk, exit_code, stdout)


def remember_by_text(judge: Callable[[str], bool]) -> Callable[[str], bool]:
    """Cache an answer that depends on the command's text alone: agents repeat commands."""
    kept = lru_cache(MOST_KEPT)(judge)
    return lambda text: kept(text) if len(text) <= LONGEST_KEPT else judge(text)


def _cd_errors(text: str, stdout: str | None, stderr: str | None) -> str:
    """The lines in which `cd` fails."""
    if "cd" not in text:
        return ""
    shown = [
        line
        for stream in (stderr, stdout)
        if stream and ("cd: " in stream or "cd to " in stream)
        for line in stream.splitlines()
    ]
    return "\n".join(line for line in shown if "cd: " in line or "can't cd to " in line)


def _walk_command(text: str, cwd: str, cd_errors: str, read_file: ReadFile | None) -> _Walk:
    if len(text) > LONGEST_KEPT:
        return _follow_paths(text, cwd, cd_errors, read_file)
    walk = _walk_without_files(text, cwd, cd_errors)
    return _follow_paths(text, cwd, cd_errors, read_file) if walk.reads_files and read_file else walk


@lru_cache(MOST_KEPT)
def _walk_without_files(text: str, cwd: str, cd_errors: str) -> _Walk:
    """Cached: several readers ask about a command before and after it ran."""
    return _follow_paths(text, cwd, cd_errors)


def _follow_paths(text: str, cwd: str, cd_errors: str, read_file: ReadFile | None = None) -> _Walk:
    executor = Executor(cd_errors, read_file)
    try:
        node = parse_command(text)
    except ShellTooLarge:
        return _Walk(problem="the command is too large to be followed")
    except (ShellUnreadable, RecursionError, ValueError):
        return _Walk(problem="the command could not be parsed as shell text")
    try:
        paths = [done for path in executor.run(node, Path(cwd=cwd), Streams()) for done in finish_shell(executor, path)]
    except (ShellTooLarge, RecursionError):
        return _Walk(problem="the command has too many parts to be followed", reads_files=executor.asked_for_files)
    except ShellUnreadable:
        return _Walk(
            problem="a part of the command could not be parsed as shell text", reads_files=executor.asked_for_files
        )
    return _Walk(
        executor.invocations, paths, "", tuple(executor.sourced), tuple(executor.run_later), tuple(executor.redirected),
        executor.asked_for_files,
    )  # fmt: skip


def _conclude_analysis(walk: _Walk, exit_code: int | None, stdout: str | None) -> Analysis:
    # `_fits_exit` writes into `assumed`, and the walk is shared.
    fitting = [msgspec.structs.replace(path, assumed=dict(path.assumed)) for path in walk.paths]
    by_signal = exit_code is not None and (exit_code in KILLED or exit_code < 0)
    # A command that was ended early may have printed less than it would.
    if exit_code is not None and not by_signal:
        fitting = _fitting_paths(fitting, exit_code, stdout)
    commands = [ShellCommand(invocation, Ran.MAYBE, None) for invocation in walk.invocations]
    for command in commands if fitting else ():
        _update_command(command, fitting, by_signal)
    defined = tuple(chain.from_iterable(path.functions for path in walk.paths))
    return Analysis(
        commands, _terminal_output(fitting), defined, "", fitting, by_signal, walk.sourced, walk.run_later, walk.redirected, walk.reads_files,
    )  # fmt: skip


def _fitting_paths(paths: list[Path], exit_code: int, stdout: str | None) -> list[Path]:
    fitting = [path for path in paths if _fits_exit(path, path.status, exit_code)]
    # Output that fits no way at all was cut or changed, and is no evidence.
    return ([path for path in fitting if _fits_text(path, stdout)] if stdout is not None else []) or fitting


def _contains_literals(path: Path, stdout: str) -> bool:
    pieces = path.outputs.get(TERMINAL, ())
    texts = (p.text.strip() for p in pieces if not p.stderr and not p.filters and p.invocation < 0 and not p.status)
    return len(stdout) >= MAX_UNCUT or all(text in stdout for text in texts if UNKNOWN not in text)


def _path_agrees(path: Path, succeeded: dict[int, bool]) -> bool:
    return all(
        path.assumed.get(index) is None or (path.assumed[index] == 0) == good for index, good in succeeded.items()
    )


def _fits_exit(path: Path, status: Status, code: int) -> bool:
    """Whether the path can end with this code; what follows for an invocation is kept as its exit code."""
    if status.kind == "code":
        return status.code == code
    if status.kind == "of":
        return _assume_code(path, status.invocation, code)
    if status.kind == "not":
        # A negation ends with 0 or 1.
        return code in (0, 1) and _assume_code(path, status.invocation, FAILED if code == 0 else 0)
    if status.kind == "all":
        return _fits_all(path, status.members, code)
    return status.kind != "failed" or code != 0


def _fits_all(path: Path, members: tuple[Status, ...], code: int) -> bool:
    unsure = [m for m in members if not (m.kind == "code" and m.code == 0)]
    if code == 0:
        return all(_fits_exit(path, member, 0) for member in unsure)
    if len(unsure) == 1:
        return _fits_exit(path, unsure[0], code)
    return bool(unsure)


def _assume_code(path: Path, index: int, code: int) -> bool:
    assumed = path.assumed.get(index)
    # Until now it was only known not to be 0.
    if assumed is None or (assumed == FAILED and code not in (0, FAILED)):
        path.assumed[index] = code
        return True
    return (assumed == 0) == (code == 0)


def _fits_text(path: Path, stdout: str) -> bool:
    """Whether the output contains what the command itself prints, its last text at the end.

    A printed exit status is recorded.
    """
    if not _contains_literals(path, stdout):
        return False
    last = _printed_last(path)
    pattern = "".join(r"(\d+)" if p.status else _as_pattern(p.text) for p in last).removesuffix(r"\n+")
    # A background job may print later.
    if path.pending or len(pattern) > MAX_TAIL or not pattern.strip():
        return True
    match = re.search(rf"(?:\A|\n){pattern}\s*\Z", stdout[-MAX_TAIL:], re.DOTALL)
    if match is None:
        return False
    # An exit status has at most three digits.
    statuses = filter(None, (piece.status for piece in last))
    return all(map(_fits_exit, repeat(path), statuses, (int(number[:3]) for number in match.groups())))


def _printed_last(path: Path) -> list[OutputPiece]:
    """What the shell itself prints at the end, without blank texts behind it."""
    printed = reversed(path.outputs.get(TERMINAL, ()))
    own = takewhile(lambda piece: not piece.stderr and piece.invocation < 0 and not piece.filters, printed)
    return list(dropwhile(lambda piece: not piece.status and not piece.text.strip(), own))[::-1]


def _as_pattern(text: str) -> str:
    return r"\n+".join(re.escape(line) for line in re.split(r"\n+", text)).replace(UNKNOWN, ".*?")


def _update_command(command: ShellCommand, paths: list[Path], killed: bool) -> None:
    index = command.invocation.index
    here = [path for path in paths if index in path.ran]
    command.interrupted = killed
    command.ran = Ran.MAYBE if killed and here else _ran(index, here, paths)
    command.pending = any(index in path.pending for path in here)
    codes = {path.assumed.get(index) for path in here} or {None}
    command.exit_code = None if command.pending else _exit_code(command.invocation, codes, killed)
    shown = chain.from_iterable(path.outputs.get(TERMINAL, ()) for path in here)
    command.visible = tuple(dict.fromkeys(piece for piece in shown if piece.invocation == index))


def _ran(index: int, here: list[Path], paths: list[Path]) -> Ran:
    if not here:
        return Ran.NO
    return Ran.YES if len(here) == len(paths) and all(path.ran[index] for path in paths) else Ran.MAYBE


def _exit_code(invocation: Invocation, codes: set[int | None], killed: bool) -> int | None:
    """`codes`: what is assumed on the ways that fit."""
    different = FAILED if codes.isdisjoint((None, 0)) else None
    code = next(iter(codes)) if len(codes) == 1 else different
    hidden = invocation.code_hidden
    # Which of several runs the code belongs to is not known.
    if invocation.repeated or (killed and code is None):
        return 0 if code == 0 and hidden else None
    return FAILED if hidden and code else code


def _terminal_output(paths: list[Path]) -> Pieces:
    """The longest output first, then what only other paths print."""
    printed = [path.outputs.get(TERMINAL, ()) for path in paths]
    if len(printed) == 1:
        return printed[0]
    longest = max(printed, key=len, default=())
    return tuple(dict.fromkeys(piece for pieces in (longest, *printed) for piece in pieces))
