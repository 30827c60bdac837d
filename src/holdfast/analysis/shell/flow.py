"""The paths a command can take: the programs started, what is assumed about them, and where output went."""

from typing import TypeAlias

import msgspec

from holdfast.analysis.shell.syntax import Node

FAILED = -1
"""An exit code that is not 0 but otherwise unknown."""
TERMINAL = "terminal"
STDOUT, STDERR = "&1", "&2"
"""Where the shell itself writes: the terminal, unless `exec > file` changed it."""
NULL = "null"


class Status(msgspec.Struct, frozen=True):
    """How the last command ended: a known code, or that of an invocation."""

    kind: str
    """`code`, `of`, `not`, `all` (of a pipeline under pipefail), `failed` (any but 0) or `unknown`."""
    code: int = 0
    invocation: int = -1
    members: tuple["Status", ...] = ()


SUCCESS = Status("code", 0)
UNKNOWN_STATUS = Status("unknown")
FAILED_STATUS = Status("failed")


def known_status(code: int) -> Status:
    return Status("code", code)


UNFINISHED = "unfinished"


class OutputPiece(msgspec.Struct, frozen=True):
    """One stretch of output: literal text, an exit status printed as a number, or what an invocation prints."""

    invocation: int = -1
    text: str = ""
    status: Status | None = None
    filters: tuple[str, ...] = ()
    """How it was changed on its way: `tail`, `lines` (a choice of whole lines), `rewritten`, or `unfinished`."""
    stderr: bool = False

    def through(self, how: str) -> "OutputPiece":
        return msgspec.structs.replace(self, filters=(*self.filters, how)) if how else self


def _finished_piece(piece: OutputPiece) -> OutputPiece:
    return msgspec.structs.replace(piece, filters=tuple(how for how in piece.filters if how != UNFINISHED))


Pieces: TypeAlias = tuple[OutputPiece, ...]


def literal_text(pieces: Pieces | None) -> str:
    """The part that the command itself spells out."""
    return "".join(piece.text for piece in pieces or () if piece.invocation < 0)


class Value(msgspec.Struct, frozen=True):
    """What a variable holds: text (with the mark of the unknown in it), captured output, or an exit status."""

    text: str = ""
    pieces: Pieces = ()
    status: Status | None = None
    fields: tuple[str, ...] | None = None
    """The elements of an array, or the arguments that `"$@"` stands for."""


class Invocation(msgspec.Struct):
    """One program that was, or may have been, started."""

    index: int
    words: list[str]
    cwd: str
    environment: dict[str, str]
    wrappers: tuple[str, ...] = ()
    stdin: Pieces | None = None
    """None when it reads what the shell itself reads."""
    packages: tuple[str, ...] = ()
    """Packages of a workspace that a wrapper ran it in, by name, path or pattern."""
    background: bool = False
    repeated: bool = False
    """It may have run more than once."""
    code_hidden: bool = False
    """A wrapper gives another code than the program; only zero or not zero is known."""
    tampered: str = ""
    """Why the name may not mean the well-known program."""
    shadowed: bool = False
    """The name is a function of the command itself; its body was followed instead."""
    writes: tuple[str, ...] = ()
    """Files that redirections of this command write to."""


class Path(msgspec.Struct):
    """One path through the command, with the state of the shell."""

    cwd: str = "."
    status: Status = SUCCESS
    control: str = ""
    """`exit`, `return`, `break` or `continue` while it is on its way to where it ends."""
    variables: dict[str, Value] = {}
    exported: frozenset[str] = frozenset()
    functions: dict[str, Node] = {}
    aliases: dict[str, tuple[str, int]] = {}
    options: frozenset[str] = frozenset()
    trap: Node | None = None
    tampered: str = ""
    """Why program names can no longer be trusted, if so."""
    pipestatus: tuple[Status, ...] = ()
    job: Status = SUCCESS
    jobs: int = 0
    directories: tuple[str, ...] = ()
    ran: dict[int, bool] = {}
    """Invocation → True when it ran for sure on this way, False when maybe."""
    assumed: dict[int, int] = {}
    """Invocation → the exit code it must have had on this way."""
    pending: frozenset[int] = frozenset()
    """Started in the background and not waited for."""
    replaced: dict[str, str] = {}
    """Where `exec > file` sends the shell's own output."""
    outputs: dict[str, Pieces] = {}
    """Sink → what went there. A file's name is its sink."""

    def tamper(self, why: str) -> None:
        """The first reason is kept."""
        self.tampered = self.tampered or why

    def clone(self) -> "Path":
        copy = msgspec.structs.replace(self)
        # Copies what is changed in place.
        copy.ran = dict(self.ran)
        copy.assumed = dict(self.assumed)
        copy.outputs = dict(self.outputs)
        copy.variables = dict(self.variables)
        return copy

    def write(self, sink: str, pieces: Pieces) -> None:
        target = self.replaced.get(sink, TERMINAL) if sink in (STDOUT, STDERR) else sink
        if target == NULL or not pieces:
            return
        if sink == STDERR:
            pieces = tuple(msgspec.structs.replace(piece, stderr=True) for piece in pieces)
        self.outputs[target] = self.outputs.get(target, ()) + pieces

    def mark_unfinished(self, before: "Path") -> None:
        """Marks what a background job wrote: readers may still see the old content."""
        for sink, pieces in self.outputs.items():
            if sink != TERMINAL and not sink.startswith("&") and pieces != before.outputs.get(sink):
                self.outputs[sink] = tuple(piece.through(UNFINISHED) for piece in pieces)

    def mark_finished(self) -> None:
        """After a wait: what a job wrote can be read."""
        for sink, pieces in self.outputs.items():
            if sink != TERMINAL and any(UNFINISHED in piece.filters for piece in pieces):
                self.outputs[sink] = tuple(_finished_piece(piece) for piece in pieces)

    def restore_shell(self, before: "Path") -> None:
        """Ends a subshell: its changes to the shell are dropped, its effects stay."""
        self.cwd, self.control = before.cwd, ""
        self.variables, self.exported = before.variables, before.exported
        self.functions, self.aliases = before.functions, before.aliases
        self.options, self.trap, self.tampered = before.options, before.trap, before.tampered
        self.directories, self.replaced = before.directories, before.replaced


class Streams(msgspec.Struct, frozen=True):
    """Where a command reads from and writes to."""

    stdin: Pieces | None = None
    stdout: str = STDOUT
    stderr: str = STDERR


def split_path(path: Path, status: Status) -> tuple[list[Path], list[Path]]:
    """The path where `status` is zero and the one where it is not; either list may be empty."""
    if status.kind == "code":
        return ([path], []) if status.code == 0 else ([], [path])
    if status.kind == "not":
        # The negation fails where the invocation succeeded, hence the exchanged order.
        failed, succeeded = split_path(path, Status("of", invocation=status.invocation))
        return succeeded, failed
    if status.kind == "all":
        return _split_all(path, status.members)
    if status.kind == "of":
        assumed = path.assumed.get(status.invocation)
        if assumed is not None:
            return ([path], []) if assumed == 0 else ([], [path])
        other = path.clone()
        path.assumed[status.invocation] = 0
        other.assumed[status.invocation] = FAILED
        return [path], [other]
    if status.kind == "failed":
        return [], [path]
    # Both are possible.
    other = path.clone()
    if path.status == status:
        path.status, other.status = SUCCESS, FAILED_STATUS
    return [path], [other]


def _split_all(path: Path, members: tuple[Status, ...]) -> tuple[list[Path], list[Path]]:
    open_members = [m for m in members if not (m.kind == "code" and m.code == 0)]
    if not open_members:
        return [path], []
    if len(open_members) == 1:
        return split_path(path, open_members[0])
    # It is unknown which member failed.
    other = path.clone()
    good: list[Path] = [path]
    for member in open_members:
        good = [zero for one in good for zero in split_path(one, member)[0]]
    return good, [other]


def merge_paths(paths: list[Path], limit: int) -> list[Path]:
    """Above the limit, merges paths that differ only in their assumptions."""
    if len(paths) <= limit:
        return paths
    merged: dict[tuple[object, ...], Path] = {}
    for path in paths:
        key = (path.cwd, path.control, path.status, path.options, path.tampered)
        same_path = merged.get(key)
        if same_path is None:
            merged[key] = path
        else:
            _join_paths(same_path, path)
    return list(merged.values())


def _join_paths(path: Path, other: Path) -> None:
    path.assumed = {k: v for k, v in path.assumed.items() if other.assumed.get(k) == v}
    both = path.ran.keys() | other.ran.keys()
    # Sure only where both ways are.
    path.ran = {k: path.ran.get(k, False) and other.ran.get(k, False) for k in both}
    path.pending |= other.pending
    path.variables = {k: v for k, v in path.variables.items() if other.variables.get(k) == v}
    for sink, pieces in other.outputs.items():
        mine = path.outputs.get(sink, ())
        path.outputs[sink] = mine + tuple(piece for piece in pieces if piece not in mine)


def merge_all(paths: list[Path]) -> Path:
    """Merges all paths into one; only for loops."""
    first = paths[0]
    for other in paths[1:]:
        first.ran = {
            k: first.ran.get(k, False) and other.ran.get(k, False) for k in first.ran.keys() | other.ran.keys()
        }
        for sink, pieces in other.outputs.items():
            mine = first.outputs.get(sink, ())
            first.outputs[sink] = mine + tuple(piece for piece in pieces if piece not in mine)
        first.pending |= other.pending
    return first
