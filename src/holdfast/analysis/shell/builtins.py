"""Commands of the shell itself that change what follows."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.analysis.shell.expand import assigned_value, expand_word, parse_integer, status_of, word_pieces
from holdfast.analysis.shell.flow import (
    SUCCESS,
    UNKNOWN_STATUS,
    OutputPiece,
    Path,
    Pieces,
    Status,
    Value,
    known_status,
)
from holdfast.analysis.shell.parse import ShellTooLarge, ShellUnreadable
from holdfast.analysis.shell.redirects import join_path
from holdfast.analysis.shell.syntax import ROOT_FOLDER, UNKNOWN, Node, Word
from holdfast.analysis.shell.word_lists import word_list
from holdfast.core.lazy import lazy_pattern

if TYPE_CHECKING:
    from holdfast.analysis.shell.execute import Executor
    from holdfast.analysis.shell.programs import Call

# Folders of the system, of the user's tools, of virtual environments and of packages in the project.
_TRUSTED_FOLDER = lazy_pattern(
    r"^(?:~(?:/.*)?|/usr(?:/.*)?|/s?bin|/opt/.*|/snap/.*|/nix/.*|(?:/home/[^/]+|/root)/\..*"
    r"|(?:.*/)?(?:\.?v?env|\.venv[\w.-]*|\.tox/[^/]+|\.nox/[^/]+)/bin|(?:.*/)?node_modules/\.bin|(?:.*/)?vendor/bin)/?$"
)
# By custom these only set up an environment: activate scripts, .env files, profiles, version managers.
_HARMLESS_SOURCE = lazy_pattern(
    r"(?:^|/)(?:activate(?:\.\w+)?|\.env[\w.]*|\w*\.env|[\w.-]*env\.sh|\.?\w*rc|\.\w*profile|nvm\.sh|conda\.sh|asdf\.sh"
    r"|virtualenvwrapper\.sh|env)$"
)
MAX_EVALS = 4
# `%%`, or one directive with flags, width and precision.
_PRINTF = lazy_pattern(r"%(?:%|[-+ 0#]*\d*(?:\.\d+)?[sdiqbxucf])")
_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\\\": "\\", "\\r": "\r", '\\"': '"', "\\e": "\x1b"}
# Groups: hex digits, octal digits; everything else is looked up in `_ESCAPES`.
_ESCAPE = lazy_pattern(r"\\(?:x([0-9a-fA-F]{1,2})|0?([0-7]{3})|n|t|\\|r|\"|e)")


def assign_variable(path: Path, name: str, value: Value, append: bool = False) -> None:
    """Sets a variable of the shell; a search path that leads to other programs is remembered."""
    if append:
        value = _append_value(path.variables.get(name), value)
    path.variables = {**path.variables, name: value}
    path.tampered = path.tampered or tampering_reason(name, value.text)


def _append_value(old: Value | None, value: Value) -> Value:
    if value.fields is not None and (old is None or old.fields is not None):
        fields = (*(old.fields or () if old else ()), *value.fields)
        return Value(" ".join(fields), fields=fields)
    return Value(f"{old.text}{value.text}" if old and not value.pieces else UNKNOWN)


def is_harmless_source(name: str) -> bool:
    return bool(_HARMLESS_SOURCE.search(name))


def tampering_reason(name: str, value: str) -> str:
    """Why an assignment makes program names unreliable; empty when it does not."""
    if name == "PATH":
        folders = [f for f in value.split(":") if f and f != UNKNOWN and not _TRUSTED_FOLDER.match(f)]
        return f"PATH leads to {folders[0].replace(UNKNOWN, '$…')} first" if folders else ""
    return f"{name} changes which code is run" if name in word_list("program_search") else ""


# ── what each builtin does ───────────────────────────────────────────────────────────────────────────────────────────


def _run_succeeding(executor: "Executor", call: "Call", path: Path) -> list[Path]:
    path.status = SUCCESS
    return [path]


def _run_failing(executor: "Executor", call: "Call", path: Path) -> list[Path]:
    path.status = known_status(1)
    return [path]


def _run_unknown(executor: "Executor", call: "Call", path: Path) -> list[Path]:
    path.status = UNKNOWN_STATUS
    return [path]


def _run_echo(executor: "Executor", call: "Call", path: Path) -> list[Path]:
    # The words as written, not their fields: a status or captured output is printed as a piece of its own.
    words, newline, escapes = list(call.node.words[call.offset + 1 :]), True, False
    while words and (text := "".join(expand_word(path, words[0]))) in ("-n", "-e", "-ne", "-en", "-E"):
        newline, escapes = newline and "n" not in text, escapes or "e" in text
        words.pop(0)
    pieces = _join_words(path, words)
    if escapes:
        pieces = tuple(_unescape_piece(piece) for piece in pieces)
    path.write(call.streams.stdout, pieces + ((OutputPiece(text="\n"),) if newline else ()))
    path.status = SUCCESS
    return [path]


def _join_words(path: Path, words: list[Word]) -> Pieces:
    pieces: list[OutputPiece] = []
    for number, word in enumerate(words):
        pieces += [OutputPiece(text=" ")] if number else []
        pieces += word_pieces(path, word)
    return tuple(pieces)


def _unescape_piece(piece: OutputPiece) -> OutputPiece:
    return OutputPiece(text=unescape_text(piece.text)) if piece.text else piece


def unescape_text(text: str) -> str:
    return _ESCAPE.sub(_unescape_match, text)


def _unescape_match(match: re.Match[str]) -> str:
    if match[1] or match[2]:
        return chr(int(match[1], 16) if match[1] else int(match[2], 8) % 256)
    return _ESCAPES[match[0]]


def _run_printf(executor: "Executor", call: "Call", path: Path) -> list[Path]:
    words = list(call.node.words[call.offset + 1 :])
    path.status = SUCCESS
    first = "".join(expand_word(path, words[0])) if words else ""
    if first == "-v" and len(words) > 1:
        form = "".join(expand_word(path, words[2])) if len(words) > 2 else ""
        text = _plain_text(_format_pieces(path, unescape_text(form), words[3:]))
        assign_variable(path, "".join(expand_word(path, words[1])), Value(UNKNOWN if text is None else text))
        return [path]
    path.write(call.streams.stdout, _format_pieces(path, unescape_text(first), words[1:]))
    return [path]


def _format_pieces(path: Path, form: str, words: list[Word]) -> Pieces:
    """The format with each directive replaced by its word; used again while words are left."""
    pieces: list[OutputPiece] = []
    rest = list(words)
    # A bound on the rounds, for a format that is given very many words.
    for _ in range(50):
        at = 0
        for match in _PRINTF.finditer(form):
            pieces.append(OutputPiece(text=form[at : match.start()]))
            at = match.end()
            if match[0] == "%%":
                pieces.append(OutputPiece(text="%"))
            elif rest:
                word = word_pieces(path, rest.pop(0))
                pieces += [_unescape_piece(piece) for piece in word] if match[0].endswith("b") else word
        pieces.append(OutputPiece(text=form[at:]))
        if not rest or not _PRINTF.search(form):
            break
    return tuple(piece for piece in pieces if piece != OutputPiece())


def _run_cd(executor: "Executor", call: "Call", path: Path) -> list[Path]:
    targets = [word for word in call.words[1:] if not word.startswith("-") or word == "-"]
    target = targets[0] if targets else "~"
    # The wording of bash and that of dash. `output` holds only the lines in which `cd` complains.
    failed = f"cd: {target}: " in executor.output or f"can't cd to {target}" in executor.output
    path.status = known_status(1) if failed else SUCCESS
    # Its complaint may have gone into a file: that none is seen proves nothing.
    if call.node.redirects and not failed:
        path.status = Status("unknown")
    if failed:
        return [path]
    before = path.cwd
    if target == "-":
        path.cwd = path.directories[-1] if path.directories else UNKNOWN
    else:
        path.cwd = join_path(path.cwd, target) if UNKNOWN not in target else _unknown_folder(executor, call, path)
    path.directories = (*path.directories, before)
    return [path]


def _unknown_folder(executor: "Executor", call: "Call", path: Path) -> str:
    """`cd "$(git rev-parse --show-toplevel)"` and `cd "$GITHUB_WORKSPACE"` go to the root by custom; else nobody knows."""
    word = call.node.words[-1] if call.node.words else None
    names = {part.text for part in word.parts if part.kind == "variable"} if word else set()
    if word and len(word.parts) == 1 and names & word_list("root_variables"):
        return ROOT_FOLDER
    indexes = [piece.invocation for piece in word_pieces(path, word) if piece.invocation >= 0] if word else []
    asked = [executor.invocations[index].words for index in indexes]
    return ROOT_FOLDER if asked == [["git", "rev-parse", "--show-toplevel"]] else UNKNOWN


def _run_pwd(executor: "Executor", call: "Call", path: Path) -> list[Path]:
    path.write(call.streams.stdout, (OutputPiece(text=f"{path.cwd}\n"),))
    path.status = SUCCESS
    return [path]


def _run_popd(executor: "Executor", call: "Call", path: Path) -> list[Path]:
    if path.directories:
        path.cwd, path.directories = path.directories[-1], path.directories[:-1]
    path.status = SUCCESS
    return [path]


def _run_exit(executor: "Executor", call: "Call", path: Path) -> list[Path]:
    arguments = call.words[1:]
    word = call.node.words[call.offset + 1] if len(call.node.words) > call.offset + 1 else None
    if arguments:
        path.status = status_of(path, arguments[0], word)
    path.control = "return" if call.words[0] == "return" else "exit"
    return [path]


def _run_jump(executor: "Executor", call: "Call", path: Path) -> list[Path]:
    path.control = call.words[0]
    path.status = SUCCESS
    return [path]


_SHORT_OPTIONS = {"e": "errexit", "n": "noexec", "x": "xtrace", "u": "nounset"}


def _run_set(executor: "Executor", call: "Call", path: Path) -> list[Path]:
    path.status = SUCCESS
    words = call.words[1:]
    if words[:1] == ["--"]:
        set_positional(path, words[1:])
        return [path]
    path.options = set_options(path.options, words)
    return [path]


def set_options(options: frozenset[str], words: list[str]) -> frozenset[str]:
    """The options after `set WORDS` or after the flags of a new shell."""
    named: list[tuple[str, bool]] = []
    at = 0
    while at < len(words):
        word, on = words[at], words[at].startswith("-")
        if word[:1] not in "-+" or len(word) < 2:
            break
        for letter in word[1:]:
            # `-o` takes the next word, also at the end of `-euo pipefail`.
            if letter == "o" and at + 1 < len(words):
                at += 1
                named.append((words[at], on))
            elif letter in _SHORT_OPTIONS:
                named.append((_SHORT_OPTIONS[letter], on))
        at += 1
    for name, on in named:
        options = options | {name} if on else options - {name}
    return options


def set_positional(path: Path, arguments: list[str]) -> None:
    variables = {k: v for k, v in path.variables.items() if not (k.isdecimal() or k in "@*#")}
    variables |= {str(n + 1): Value(word) for n, word in enumerate(arguments)}
    joined = Value(" ".join(arguments), fields=tuple(arguments))
    path.variables = {**variables, "@": joined, "*": joined, "#": Value(str(len(arguments)))}


def _run_declare(executor: "Executor", call: "Call", path: Path) -> list[Path]:
    for assignment in call.node.assignments:
        value = assigned_value(path, assignment)
        assign_variable(path, assignment.name, value, assignment.append)
        if "-n" in call.words:  # Another name of that variable.
            path.variables = {**path.variables, f"&{assignment.name}": value}
    names = [word.partition("=")[0] for word in call.words[1:] if not word.startswith("-")]
    if call.words[0] == "export":
        functions = "-f" in call.words
        path.exported |= {
            f"{name}()" if functions else name for name in (*names, *(a.name for a in call.node.assignments))
        }
    path.status = SUCCESS
    return [path]


def _run_unset(executor: "Executor", call: "Call", path: Path) -> list[Path]:
    for name in call.words[1:]:
        path.functions = {k: v for k, v in path.functions.items() if k != name}
        path.variables = {k: v for k, v in path.variables.items() if k != name}
    path.status = SUCCESS
    return [path]


def _run_alias(executor: "Executor", call: "Call", path: Path) -> list[Path]:
    for word in call.words[1:]:
        name, equals, text = word.partition("=")
        if equals:
            path.aliases = {**path.aliases, name: (text, call.node.line)}
    path.status = SUCCESS
    return [path]


def _run_unalias(executor: "Executor", call: "Call", path: Path) -> list[Path]:
    path.aliases = {} if "-a" in call.words else {k: v for k, v in path.aliases.items() if k not in call.words}
    path.status = SUCCESS
    return [path]


def _run_shopt(executor: "Executor", call: "Call", path: Path) -> list[Path]:
    names = [word for word in call.words[1:] if not word.startswith("-")]
    if "-s" in call.words:
        path.options |= frozenset(names)
    elif "-u" in call.words:
        path.options -= frozenset(names)
    path.status = SUCCESS
    return [path]


def _run_trap(executor: "Executor", call: "Call", path: Path) -> list[Path]:
    words = [word for word in call.words[1:] if word != "--"]
    path.status = SUCCESS
    if len(words) < 2:
        return [path]
    action, signals = words[0], words[1:]
    if any(s in ("EXIT", "0") for s in signals):
        path.trap = None if action in ("-", "") else _parse_or_unknown(executor, path, action)
    if any(s not in ("EXIT", "0") for s in signals) and action not in ("-", ""):
        executor.run_later.append(action)
    # Such a trap runs between any two commands and may redefine what follows.
    if any(s in ("ERR", "DEBUG", "RETURN") for s in signals) and action not in ("-", ""):
        path.tampered = path.tampered or "a trap runs between the commands"
    return [path]


def _parse_or_unknown(executor: "Executor", path: Path, text: str) -> Node | None:
    try:
        return executor.parse(text)
    except ShellUnreadable:
        path.tampered = path.tampered or "a trap could not be read"
        return None


def _run_wait(executor: "Executor", call: "Call", path: Path) -> list[Path]:
    path.pending = frozenset()
    path.mark_finished()
    arguments = [word for word in call.words[1:] if not word.startswith("-")]
    if not arguments:
        path.status = SUCCESS
    else:
        # `$!` is the last job; another operand names it only where there was a single one.
        path.status = path.job if path.jobs == 1 or call.raw_last == "!" else UNKNOWN_STATUS
    return [path]


def _run_sleep(executor: "Executor", call: "Call", path: Path) -> list[Path]:
    path.mark_finished()
    path.status = SUCCESS
    return [path]


def _run_kill(executor: "Executor", call: "Call", path: Path) -> list[Path]:
    # `kill $$` ends the shell itself.
    if call.raw_last == "$":
        path.control, path.status = "exit", UNKNOWN_STATUS
    else:
        path.status = UNKNOWN_STATUS
    return [path]


def _run_read(executor: "Executor", call: "Call", path: Path) -> list[Path]:
    names = [word for word in call.words[1:] if not word.startswith("-")]
    pieces = call.streams.stdin or ()
    whole = call.words[0] != "read"
    line = _plain_text(pieces) if pieces and not whole else None
    listed = _plain_text(pieces) if pieces and (whole or _takes_list(call.words)) else None
    if listed is not None and names:
        fields = tuple(listed.splitlines() if whole else listed.strip().split("\n")[0].split())
        path.variables = {**path.variables, names[-1]: Value(" ".join(fields), fields=fields)}
        path.status = SUCCESS if whole else UNKNOWN_STATUS
        return [path]
    if line is not None and line.strip() and names:
        return _read_line(path, names, line.strip().split("\n")[0])
    value_pieces = pieces if whole else tuple(piece.through("lines") for piece in pieces)
    # Each name gets a part of the line, and nobody can say which.
    path.variables = {**path.variables, **{name: Value(UNKNOWN, value_pieces) for name in names}}
    path.status = SUCCESS if whole else UNKNOWN_STATUS
    return [path]


def _takes_list(words: list[str]) -> bool:
    """`read -ra NAME`."""
    return any(re.fullmatch(r"-[a-zA-Z]*a", word) for word in words[1:])


def _read_line(path: Path, names: list[str], line: str) -> list[Path]:
    """A line that the command itself spells out; the last name takes what is left of it."""
    fields = line.split(maxsplit=len(names) - 1)
    values = {name: Value(fields[at] if at < len(fields) else "") for at, name in enumerate(names)}
    path.variables = {**path.variables, **values}
    path.status = UNKNOWN_STATUS
    return [path]


def _run_eval(executor: "Executor", call: "Call", path: Path) -> list[Path]:
    text = " ".join(call.words[1:])
    # `eval eval ...`: each one parses what is left of the words again.
    if call.words.count("eval") > MAX_EVALS:
        raise ShellTooLarge
    if UNKNOWN in text:
        path.status = UNKNOWN_STATUS
        if _sets_up_tools(executor, call, path):
            return [path]
        path.tampered = path.tampered or "eval of text that is not known"
        return [path]
    return executor.run(executor.parse(text), path, call.streams, True)


def _sets_up_tools(executor: "Executor", call: "Call", path: Path) -> bool:
    """`eval "$(pyenv init -)"` and its like: the well-known way to put tools on the search path."""
    words = call.node.words[call.offset + 1 :]
    indexes = [piece.invocation for word in words for piece in word_pieces(path, word) if piece.invocation >= 0]
    return bool(indexes) and all(executor.invocations[n].words[0] in word_list("tool_managers") for n in indexes)


def _run_source(executor: "Executor", call: "Call", path: Path) -> list[Path]:
    # `. <(cmd)` reads a substitution, whose sink begins with `&$(`.
    name = call.words[1] if len(call.words) > 1 else ""
    if name == "/dev/stdin" or name.startswith("&$("):
        written = call.streams.stdin if name == "/dev/stdin" else path.outputs.get(name)
    else:
        executor.note_sourced(path, name)
        written = path.outputs.get(join_path(path.cwd, name))
    if UNKNOWN not in name and not is_harmless_source(name):
        text = _plain_text(written) if written is not None else executor.read_file(join_path(path.cwd, name))
        if text is not None:
            return executor.run(executor.parse(text), path, call.streams, True)
        path.tampered = path.tampered or f"{name or 'a file'} was sourced and may define other commands"
    path.status = UNKNOWN_STATUS if name.startswith(("~", "/", UNKNOWN)) else Status("unknown")
    return [path]


def _plain_text(pieces: Pieces) -> str | None:
    if any(piece.invocation >= 0 or piece.status or UNKNOWN in piece.text for piece in pieces):
        return None
    return "".join(piece.text for piece in pieces)


def _run_hash(executor: "Executor", call: "Call", path: Path) -> list[Path]:
    if "-p" in call.words:
        path.tampered = path.tampered or "hash -p gives a name another program"
    path.status = SUCCESS
    return [path]


def _run_enable(executor: "Executor", call: "Call", path: Path) -> list[Path]:
    path.tampered = path.tampered or "enable changes the builtins"
    path.status = UNKNOWN_STATUS
    return [path]


def _run_shift(executor: "Executor", call: "Call", path: Path) -> list[Path]:
    """`"$@"` begins later; where the arguments are not known they stay so."""
    count, total = parse_integer(call.words[1]) if len(call.words) > 1 else 1, path.variables.get("#")
    known = parse_integer(total.text) if total is not None else None
    path.status = SUCCESS
    if known is None:
        return [path]
    if count is None or not 0 <= count <= known:
        path.status = UNKNOWN_STATUS
        return [path]
    arguments = [path.variables.get(str(n + 1), Value(UNKNOWN)) for n in range(known)]
    set_positional(path, [value.text for value in arguments[count:]])
    return [path]


BUILTINS: dict[str, Callable[["Executor", "Call", Path], list[Path]]] = {
    "true": _run_succeeding, ":": _run_succeeding, "false": _run_failing, "echo": _run_echo, "printf": _run_printf, "cd": _run_cd, "pushd": _run_cd,
    "popd": _run_popd, "pwd": _run_pwd, "exit": _run_exit, "return": _run_exit, "break": _run_jump, "continue": _run_jump, "set": _run_set, "export": _run_declare,
    "local": _run_declare, "declare": _run_declare, "readonly": _run_declare, "typeset": _run_declare, "unset": _run_unset,
    "alias": _run_alias, "unalias": _run_unalias, "shopt": _run_shopt, "trap": _run_trap, "wait": _run_wait, "kill": _run_kill, "read": _run_read,
    "mapfile": _run_read, "readarray": _run_read, "eval": _run_eval, "source": _run_source, ".": _run_source, "hash": _run_hash,
    "enable": _run_enable, "let": _run_unknown, "shift": _run_shift, "umask": _run_succeeding, "ulimit": _run_unknown,
    "disown": _run_succeeding, "bg": _run_unknown, "fg": _run_unknown, "getopts": _run_unknown, "sleep": _run_sleep, "}": _run_unknown,
}  # fmt: skip
