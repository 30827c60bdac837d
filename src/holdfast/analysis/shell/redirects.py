"""Where a redirection makes a command read from and write to."""

import posixpath
import re
from collections.abc import Callable

import msgspec

from holdfast.analysis.shell.expand import value_text, word_text, word_value
from holdfast.analysis.shell.flow import NULL, STDOUT, OutputPiece, Path, Pieces, Streams
from holdfast.analysis.shell.syntax import UNKNOWN, Redirect, Simple
from holdfast.core.lazy import lazy_pattern


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
        # Descriptors above 2 are not followed.
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
        pieces = value.pieces or (OutputPiece(text=value_text(value)),)
        return pieces if redirect.operator == "<<" else (*pieces, OutputPiece(text="\n"))
    name = file_name(path, word_text(path, redirect.target))
    if name == "/dev/null":
        return ()
    # A file that this command did not write has a content that is not known.
    return path.outputs.get(name, (OutputPiece(text=UNKNOWN),))


def _file_sink(path: Path, redirect: Redirect, streams: Streams) -> str:
    target = redirect.target
    if target.parts and target.parts[0].kind == "process":
        # `> >(tee file)`: what is written still reaches the terminal.
        first = target.parts[0].body
        name = word_text(path, first.words[0]) if isinstance(first, Simple) and first.words else ""
        return streams.stdout if name in ("tee", "cat") else NULL
    name = file_name(path, word_text(path, target))
    special = {"/dev/null": NULL, "/dev/stdout": streams.stdout, "/dev/stderr": streams.stderr, "/dev/tty": STDOUT}
    if name in special:
        return special[name]
    # `>` empties the file; `>>` leaves what was in it, which is not known.
    if redirect.operator == ">":
        path.outputs[name] = ()
    elif name not in path.outputs:
        path.outputs[name] = (OutputPiece(text=UNKNOWN),)
    return name


# Takes the bodies of heredocs out of a command before it is parsed, and puts a name in their stead.

MARK = "__holdfast_heredoc_%d__"
MARKED = lazy_pattern(r"__holdfast_heredoc_(\d+)__")
HERE_STRING = 87
"""The descriptor that marks what was written as `<<< word`."""
MAX_SCANNED = 40_000
"""More than any command may have outside of heredocs: what follows is copied unread, and the whole is too large."""
MAX_HEREDOCS = 1_000
"""The same for their number: each costs as much as a command."""
# Characters that mean nothing to the scanner, copied in one go; the next line is for strings.
_PLAIN = lazy_pattern(r"""[^\\'"`$()#<\n]+""")
_PLAIN_IN_STRING = lazy_pattern(r"""[^\\"$`]+""")
# `<<` or `<<-`, then the delimiter: bare, escaped or in quotes.
_OPERATOR = lazy_pattern(r"<<(-?)[ \t]*(\\?[\w.+@%/:-]+|'[^'\n]*'|\"[^\"\n]*\")")


class Heredoc(msgspec.Struct, frozen=True):
    body: str
    literal: bool
    """The delimiter was quoted: nothing in the body is expanded."""


class Extracted(msgspec.Struct, frozen=True):
    text: str
    heredocs: tuple[Heredoc, ...] = ()


def extract_heredocs(text: str) -> Extracted:
    """The command with each `<<WORD` and its body replaced by `< name`, each `<<<` by `87<`."""
    if "<<" not in text:
        return Extracted(text)
    return _Scanner(text).run()


class _Scanner:
    """Walks over quotes, comments and substitutions, so that only real operators are taken."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.out: list[str] = []
        self.found: list[Heredoc] = []
        # Each: number, delimiter, whether the body is literal, whether leading tabs go (`<<-`).
        self.pending: list[tuple[int, str, bool, bool]] = []
        self.stack: list[str] = []
        self.copied = 0

    def run(self) -> Extracted:
        while self.at < len(self.text) and self.copied < MAX_SCANNED and len(self.found) <= MAX_HEREDOCS:
            self._step(self.text[self.at])
        self._copy(len(self.text) - self.at)
        return Extracted("".join(self.out), tuple(self.found))

    @property
    def inside(self) -> str:
        return self.stack[-1] if self.stack else ""

    def _step(self, char: str) -> None:
        quoted = self.inside == '"'
        step = _STEPS.get(char) if not quoted or char in '\\"`$' else None
        if step:
            step(self)
        else:
            self._copy_plain(_PLAIN_IN_STRING if quoted else _PLAIN)

    def _dollar(self) -> None:
        if self.text.startswith("$'", self.at) and self.inside != '"':
            self._copy_ansi_string()
        elif self.text.startswith("$(", self.at):
            arithmetic = self.text.startswith("$((", self.at)
            self.stack.append("((" if arithmetic else "(")
            self._copy(3 if arithmetic else 2)
        else:
            self._copy(1)

    def _open(self) -> None:
        # Elsewhere than at the start of a command `((` is two brackets.
        kind = "((" if self.text.startswith("((", self.at) and self._at_command_start() else "("
        self.stack.append(kind)
        self._copy(len(kind))

    def _close(self) -> None:
        kind = self.stack.pop() if self.inside in ("(", "((") else ""
        self._copy(2 if kind == "((" and self.text.startswith("))", self.at) else 1)

    def _comment(self) -> None:
        starts_word = self.at == 0 or self.text[self.at - 1] in " \t\n;&|("
        end = self.text.find("\n", self.at)
        self._copy((end if end >= 0 else len(self.text)) - self.at if starts_word else 1)

    def _toggle(self) -> None:
        char = self.text[self.at]
        if self.inside == char:
            self.stack.pop()
        else:
            self.stack.append(char)
        self._copy(1)

    def _copy_quoted(self) -> None:
        end = self.text.find("'", self.at + 1)
        self._copy((end if end >= 0 else len(self.text)) + 1 - self.at)

    def _copy(self, count: int) -> None:
        self.out.append(self.text[self.at : self.at + count])
        self.at += count
        self.copied += count

    def _copy_plain(self, plain: re.Pattern[str]) -> None:
        match = plain.match(self.text, self.at)
        self._copy(match.end() - self.at if match else 1)

    def _copy_ansi_string(self) -> None:
        match = re.compile(r"\$'(?:\\.|[^'\\])*'?", re.DOTALL).match(self.text, self.at)
        self._copy(match.end() - self.at if match else 2)

    def _at_command_start(self) -> bool:
        before = self.text[max(0, self.at - 100) : self.at].rstrip(" \t")
        return not before or before[-1] in ";&|\n" or before.endswith(("if", "while", "for", "then", "do", "!"))

    def _take_operator(self) -> None:
        # In arithmetic `<<` shifts bits.
        if self.inside == "((":
            self._copy(1)
            return
        if self.text.startswith("<<<", self.at):
            self.out.append(f" {HERE_STRING}< ")
            self.at += 3
            return
        match = _OPERATOR.match(self.text, self.at)
        if match is None:
            self._copy(1)
            return
        delimiter = match[2]
        literal = delimiter[0] in "'\"\\"
        number = len(self.found) + len(self.pending)
        self.pending.append((number, delimiter.strip("'\"\\"), literal, bool(match[1])))
        self.out.append(f" < {MARK % number} ")
        self.at = match.end()

    def _take_bodies(self) -> None:
        self._copy(1)
        # The bodies follow in the order of their operators.
        for _number, delimiter, literal, tabs in self.pending:
            self.found.append(Heredoc(self._read_body(delimiter, tabs), literal))
        self.pending.clear()

    def _read_body(self, delimiter: str, tabs: bool) -> str:
        indent = "\t*" if tabs else ""
        end = re.compile(rf"^{indent}{re.escape(delimiter)}$", re.MULTILINE).search(self.text, self.at)
        body = self.text[self.at : end.start() if end else len(self.text)]
        self.at = min(end.end() + 1, len(self.text)) if end else len(self.text)
        return re.sub(r"^\t+", "", body, flags=re.MULTILINE) if tabs else body


_STEPS: dict[str, Callable[[_Scanner], None]] = {
    "\\": lambda scanner: scanner._copy(2),
    '"': _Scanner._toggle,
    "`": _Scanner._toggle,
    "'": _Scanner._copy_quoted,
    "$": _Scanner._dollar,
    "(": _Scanner._open,
    ")": _Scanner._close,
    "#": _Scanner._comment,
    "<": _Scanner._take_operator,
    "\n": _Scanner._take_bodies,
}
