"""Where a redirection makes a command read from and write to."""

import posixpath

from holdfast.core.shell.expand import value_text, word_text, word_value
from holdfast.core.shell.flow import NULL, STDOUT, Path, Piece, Pieces, Streams
from holdfast.core.shell.syntax import UNKNOWN, Redirect, Simple


def join_path(cwd: str, name: str) -> str:
    """`name` seen from `cwd`, without `.` and `..` where they can be resolved."""
    if not name or UNKNOWN in cwd:
        return UNKNOWN if UNKNOWN in cwd and not name.startswith(("/", "~")) else name or cwd
    if name.startswith(("/", "~")):
        return name.rstrip("/") or "/"
    return posixpath.normpath(posixpath.join(cwd, name))


def file_name(path: Path, name: str) -> str:
    """The sink of a file as named at this point; a process substitution is a sink already."""
    return name if name.startswith("&$(") else join_path(path.cwd, name)


def apply_redirect(path: Path, redirect: Redirect, streams: Streams) -> Streams:
    stdin, stdout, stderr = streams.stdin, streams.stdout, streams.stderr
    if redirect.descriptor == 0 or redirect.operator.startswith("<"):
        return Streams(_input_pieces(path, redirect), stdout, stderr)
    if redirect.operator == ">&":
        number = word_text(path, redirect.target)
        source = {"1": stdout, "2": stderr}.get(number, NULL)
        return Streams(
            stdin, source if redirect.descriptor == 1 else stdout, source if redirect.descriptor == 2 else stderr
        )
    sink = _file_sink(path, redirect, streams)
    return Streams(
        stdin,
        sink if redirect.descriptor in (1, -1) else stdout,
        sink if redirect.descriptor in (2, -1) else stderr,
    )


def _input_pieces(path: Path, redirect: Redirect) -> Pieces:
    if redirect.operator in ("<<", "<<<"):
        value = word_value(path, redirect.target)
        pieces = value.pieces or (Piece(text=value_text(value)),)
        return pieces if redirect.operator == "<<" else (*pieces, Piece(text="\n"))
    name = file_name(path, word_text(path, redirect.target))
    if name == "/dev/null":
        return ()
    return path.outputs.get(name, (Piece(text=UNKNOWN),))


def _file_sink(path: Path, redirect: Redirect, streams: Streams) -> str:
    target = redirect.target
    if target.parts and target.parts[0].kind == "process":
        first = target.parts[0].body
        name = word_text(path, first.words[0]) if isinstance(first, Simple) and first.words else ""
        return streams.stdout if name in ("tee", "cat") else NULL
    name = file_name(path, word_text(path, target))
    special = {"/dev/null": NULL, "/dev/stdout": streams.stdout, "/dev/stderr": streams.stderr, "/dev/tty": STDOUT}
    if name in special:
        return special[name]
    if redirect.operator == ">":
        path.outputs[name] = ()
    elif name not in path.outputs:
        path.outputs[name] = (Piece(text=UNKNOWN),)
    return name
