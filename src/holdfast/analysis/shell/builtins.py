"""Shell builtins."""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from holdfast.analysis.shell import expand, flow
from holdfast.analysis.shell.flow import SUCCESS, UNKNOWN_STATUS, OutputPiece, Path, Pieces, Status, Value
from holdfast.analysis.shell.parse import ShellTooLarge
from holdfast.analysis.shell.redirects import join_path
from holdfast.analysis.shell.syntax import ROOT_FOLDER, UNKNOWN, Word
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
_PRINTF = lazy_pattern(r"(%(?:%|[-+ 0#]*\d*(?:\.\d+)?[sdiqbxucf]))")
_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\\\": "\\", "\\r": "\r", '\\"': '"', "\\e": "\x1b"}
# Groups: hex digits, octal digits; everything else is looked up in `_ESCAPES`.
_ESCAPE = lazy_pattern(r"\\(?:x([0-9a-fA-F]{1,2})|0?([0-7]{3})|n|t|\\|r|\"|e)")


def assign_variable(path: Path, name: str, value: Value, append: bool = False) -> None:
    """Sets a shell variable; a PATH that leads to other programs marks the path as tampered."""
    if append:
        value = _append_value(path.variables.get(name), value)
    path.variables = {**path.variables, name: value}
    path.tamper(tampering_reason(name, value.text))


def _append_value(old: Value | None, value: Value) -> Value:
    if value.fields is not None and (old is None or old.fields is not None):
        return _array((*(old.fields or () if old else ()), *value.fields))
    return Value(f"{old.text}{value.text}" if old and not value.pieces else UNKNOWN)


def is_harmless_source(name: str) -> bool:
    return bool(_HARMLESS_SOURCE.search(name))


def tampering_reason(name: str, value: str) -> str:
    """Why an assignment makes program names unreliable; empty when it does not."""
    if name == "PATH":
        folders = [f for f in value.split(":") if f and f != UNKNOWN and not _TRUSTED_FOLDER.match(f)]
        return f"PATH leads to {folders[0].replace(UNKNOWN, '$…')} first" if folders else ""
    # `ENV=test` names an environment; shells read the file that it names only where it is a path.
    names_nothing = name == "ENV" and value.isalnum()
    return f"{name} changes which code is run" if name in word_list("program_search") and not names_nothing else ""


# ── what each builtin does: it returns how it ended ──────────────────────────────────────────────────────────────────


def run_builtin(executor: "Executor", call: "Call", path: Path) -> list[Path]:
    run = BUILTINS[call.words[0]]
    ended = run if isinstance(run, Status) else run(executor, call, path)
    if isinstance(ended, Status):
        path.status = ended
        return [path]
    return ended


def _run_echo(_executor: "Executor", call: "Call", path: Path) -> Status:
    # The words as written, not their fields: a status or captured output is printed as a piece of its own.
    words, newline, escapes = call.own_words, True, False
    while words and (text := "".join(expand.expand_word(path, words[0]))) in ("-n", "-e", "-ne", "-en", "-E"):
        newline, escapes = newline and "n" not in text, escapes or "e" in text
        words.pop(0)
    pieces = _join_words(path, words)
    if escapes:
        pieces = tuple(_unescape_piece(piece) for piece in pieces)
    path.write(call.streams.stdout, pieces + ((OutputPiece(text="\n"),) if newline else ()))
    return SUCCESS


def _join_words(path: Path, words: list[Word]) -> Pieces:
    pieces: list[OutputPiece] = []
    for number, word in enumerate(words):
        pieces += [OutputPiece(text=" ")] if number else []
        pieces += expand.word_pieces(path, word)
    return tuple(pieces)


def _unescape_piece(piece: OutputPiece) -> OutputPiece:
    return OutputPiece(text=_ESCAPE.sub(_unescape_match, piece.text)) if piece.text else piece


def _unescape_match(match: re.Match[str]) -> str:
    if match[1] or match[2]:
        return chr(int(match[1], 16) if match[1] else int(match[2], 8) % 256)
    return _ESCAPES[match[0]]


def _run_printf(_executor: "Executor", call: "Call", path: Path) -> Status:
    words = call.own_words
    texts = ["".join(expand.expand_word(path, word)) for word in words[:3]] + ["", "", ""]
    if texts[0] == "-v" and len(words) > 1:
        text = expand.plain_text(_format_pieces(path, _ESCAPE.sub(_unescape_match, texts[2]), words[3:]))
        assign_variable(path, texts[1], Value(UNKNOWN if text is None else text))
    else:
        path.write(call.streams.stdout, _format_pieces(path, _ESCAPE.sub(_unescape_match, texts[0]), words[1:]))
    return SUCCESS


def _format_pieces(path: Path, form: str, words: list[Word]) -> Pieces:
    """Fills the format, repeatedly while words are left."""
    pieces: list[OutputPiece] = []
    rest = list(words)
    # Bounds the rounds for very many words.
    for _ in range(50):
        # Text and directives in turn.
        for at, text in enumerate(_PRINTF.split(form)):
            pieces += _directive_pieces(path, text, rest) if at % 2 else [OutputPiece(text=text)]
        if not rest or not _PRINTF.search(form):
            break
    return tuple(piece for piece in pieces if piece != OutputPiece())


def _directive_pieces(path: Path, directive: str, rest: list[Word]) -> Iterable[OutputPiece]:
    if directive == "%%" or not rest:
        return [OutputPiece(text="%")] if directive == "%%" else []
    pieces = expand.word_pieces(path, rest.pop(0))
    return map(_unescape_piece, pieces) if directive.endswith("b") else pieces


def _run_cd(executor: "Executor", call: "Call", path: Path) -> Status:
    target = next((word for word in call.words[1:] if not word.startswith("-") or word == "-"), "~")
    # The wording of bash and that of dash. `output` holds only the lines in which `cd` complains.
    if f"cd: {target}: " in executor.output or f"can't cd to {target}" in executor.output:
        return flow.known_status(1)
    if target == "-":
        folder = path.directories[-1] if path.directories else UNKNOWN
    else:
        folder = join_path(path.cwd, target) if UNKNOWN not in target else _unknown_folder(executor, call, path)
    path.cwd, path.directories = folder, (*path.directories, path.cwd)
    # Its error may have been redirected.
    return UNKNOWN_STATUS if call.node.redirects else SUCCESS


def _unknown_folder(executor: "Executor", call: "Call", path: Path) -> str:
    """The root for `cd "$(git rev-parse --show-toplevel)"` and `cd "$GITHUB_WORKSPACE"`, else unknown."""
    if not call.node.words:
        return UNKNOWN
    word = call.node.words[-1]
    if [part.text for part in word.parts if part.kind == "variable"] in (
        [name] for name in word_list("root_variables")
    ):
        return ROOT_FOLDER if len(word.parts) == 1 else UNKNOWN
    asked = [executor.invocations[index].words for index in _printed_by(path, [word])]
    return ROOT_FOLDER if asked == [["git", "rev-parse", "--show-toplevel"]] else UNKNOWN


def _printed_by(path: Path, words: list[Word]) -> list[int]:
    """The invocations whose output is in the words."""
    return [piece.invocation for word in words for piece in expand.word_pieces(path, word) if piece.invocation >= 0]


def _run_pwd(_executor: "Executor", call: "Call", path: Path) -> Status:
    path.write(call.streams.stdout, (OutputPiece(text=f"{path.cwd}\n"),))
    return SUCCESS


def _run_popd(_executor: "Executor", _call: "Call", path: Path) -> Status:
    if path.directories:
        path.cwd, path.directories = path.directories[-1], path.directories[:-1]
    return SUCCESS


def _run_exit(_executor: "Executor", call: "Call", path: Path) -> Status:
    path.control = "return" if call.words[0] == "return" else "exit"
    if len(call.words) == 1:
        return path.status
    return expand.status_of(path, call.words[1], next(iter(call.own_words), None))


def _run_jump(_executor: "Executor", call: "Call", path: Path) -> Status:
    path.control = call.words[0]
    return SUCCESS


_SHORT_OPTIONS = {"e": "errexit", "n": "noexec", "x": "xtrace", "u": "nounset"}


def _run_set(_executor: "Executor", call: "Call", path: Path) -> Status:
    if call.words[1:2] == ["--"]:
        set_positional(path, call.words[2:])
    else:
        path.options = set_options(path.options, call.words[1:])
    return SUCCESS


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


def _run_declare(_executor: "Executor", call: "Call", path: Path) -> Status:
    for assignment in call.node.assignments:
        value = expand.assigned_value(path, assignment)
        assign_variable(path, assignment.name, value, assignment.append)
        if "-n" in call.words:  # Another name of that variable.
            path.variables = {**path.variables, f"&{assignment.name}": value}
    if call.words[0] == "export":
        names = [word.partition("=")[0] for word in call.words[1:] if not word.startswith("-")]
        names += [assignment.name for assignment in call.node.assignments]
        path.exported |= {f"{name}()" if "-f" in call.words else name for name in names}
    return SUCCESS


def _run_unset(_executor: "Executor", call: "Call", path: Path) -> Status:
    path.functions = {name: body for name, body in path.functions.items() if name not in call.words[1:]}
    path.variables = {name: value for name, value in path.variables.items() if name not in call.words[1:]}
    return SUCCESS


def _run_alias(_executor: "Executor", call: "Call", path: Path) -> Status:
    made = (word.partition("=") for word in call.words[1:] if "=" in word)
    path.aliases = {**path.aliases, **{name: (text, call.node.line) for name, _, text in made}}
    return SUCCESS


def _run_unalias(_executor: "Executor", call: "Call", path: Path) -> Status:
    path.aliases = {} if "-a" in call.words else {k: v for k, v in path.aliases.items() if k not in call.words}
    return SUCCESS


def _run_shopt(_executor: "Executor", call: "Call", path: Path) -> Status:
    names = frozenset(word for word in call.words[1:] if not word.startswith("-"))
    if "-s" in call.words:
        path.options |= names
    elif "-u" in call.words:
        path.options -= names
    return SUCCESS


def _run_trap(executor: "Executor", call: "Call", path: Path) -> Status:
    action, *signals = [word for word in call.words[1:] if word != "--"] or [""]
    sets = action not in ("-", "")
    if not {"EXIT", "0"}.isdisjoint(signals):
        path.trap = executor.parse_or_none(action) if sets else None
        path.tamper("a trap could not be read" if sets and path.trap is None else "")
    if sets and not {"EXIT", "0"}.issuperset(signals):
        executor.run_later.append(action)
    # Such a trap runs between any two commands and may redefine what follows.
    if sets and not {"ERR", "DEBUG", "RETURN"}.isdisjoint(signals):
        path.tamper("a trap runs between the commands")
    return SUCCESS


def _run_wait(_executor: "Executor", call: "Call", path: Path) -> Status:
    path.pending = frozenset()
    path.mark_finished()
    if all(word.startswith("-") for word in call.words[1:]):
        return SUCCESS
    # `$!` is the last job; another operand names it only where there was a single one.
    return path.job if path.jobs == 1 or call.raw_last == "!" else UNKNOWN_STATUS


def _run_sleep(_executor: "Executor", _call: "Call", path: Path) -> Status:
    path.mark_finished()
    return SUCCESS


def _run_kill(_executor: "Executor", call: "Call", path: Path) -> Status:
    # `kill $$` ends the shell itself.
    if call.raw_last == "$":
        path.control = "exit"
    return UNKNOWN_STATUS


def _run_read(_executor: "Executor", call: "Call", path: Path) -> Status:
    names = [word for word in call.words[1:] if not word.startswith("-")]
    whole = call.words[0] != "read"
    path.variables = {**path.variables, **_read_values(call, names, whole)}
    return SUCCESS if whole else UNKNOWN_STATUS


def _read_values(call: "Call", names: list[str], whole: bool) -> dict[str, Value]:
    """The line (for `mapfile` all lines) if the command spells it out; else each name gets an unknown part of the input."""
    pieces = call.streams.stdin or ()
    text = expand.plain_text(pieces) if pieces and names else None
    if text is None or not (whole or text.strip()):
        parts = pieces if whole else tuple(piece.through("lines") for piece in pieces)
        return {name: Value(UNKNOWN, parts) for name in names}
    return {names[-1]: _array(text.splitlines())} if whole else _split_line(call, names, text.strip().split("\n")[0])


def _split_line(call: "Call", names: list[str], line: str) -> dict[str, Value]:
    # `read -ra NAME`.
    if any(re.fullmatch(r"-[a-zA-Z]*a", word) for word in call.words[1:]):
        return {names[-1]: _array(line.split())}
    # The last name takes what is left of the line.
    words = line.split(maxsplit=len(names) - 1)
    return {name: Value(word) for name, word in zip_longest(names, words, fillvalue="")}


def _array(fields: Sequence[str]) -> Value:
    return Value(" ".join(fields), fields=tuple(fields))


def _run_eval(executor: "Executor", call: "Call", path: Path) -> Status | list[Path]:
    text = " ".join(call.words[1:])
    # `eval eval ...`: each one parses what is left of the words again.
    if call.words.count("eval") > MAX_EVALS:
        raise ShellTooLarge
    if UNKNOWN not in text:
        return executor.run(executor.parse(text), path, call.streams, True)
    # `eval "$(pyenv init -)"` and its like: the well-known way to put tools on the search path.
    programs = [executor.invocations[index].words[0] for index in _printed_by(path, call.own_words)]
    if not programs or not word_list("tool_managers").issuperset(programs):
        path.tamper("eval of text that is not known")
    return UNKNOWN_STATUS


def _run_source(executor: "Executor", call: "Call", path: Path) -> Status | list[Path]:
    name = "".join(call.words[1:2])
    if UNKNOWN not in name and not is_harmless_source(name):
        text = _sourced_text(executor, call, path, name)
        if text is not None:
            return executor.run(executor.parse(text), path, call.streams, True)
        path.tamper(f"{name or 'a file'} was sourced and may define other commands")
    elif not _is_stream(name):
        executor.note_sourced(path, name)
    return UNKNOWN_STATUS


def _is_stream(name: str) -> bool:
    # `. <(cmd)` reads a substitution, whose sink begins with `&$(`.
    return name == "/dev/stdin" or name.startswith("&$(")


def _sourced_text(executor: "Executor", call: "Call", path: Path, name: str) -> str | None:
    if _is_stream(name):
        written = call.streams.stdin if name == "/dev/stdin" else path.outputs.get(name)
    else:
        executor.note_sourced(path, name)
        written = path.outputs.get(join_path(path.cwd, name))
    return expand.plain_text(written) if written is not None else executor.read_file(join_path(path.cwd, name))


def _run_test(_executor: "Executor", call: "Call", path: Path) -> Status:
    words = call.own_words[:-1] if call.words[0] == "[" else call.own_words
    return expand.evaluate_test(path, tuple(words))


def _run_hash(_executor: "Executor", call: "Call", path: Path) -> Status:
    if "-p" in call.words:
        path.tamper("hash -p gives a name another program")
    return SUCCESS


def _run_enable(_executor: "Executor", _call: "Call", path: Path) -> Status:
    path.tamper("enable changes the builtins")
    return UNKNOWN_STATUS


def _run_shift(_executor: "Executor", call: "Call", path: Path) -> Status:
    """Drops arguments; unknown arguments stay unknown."""
    count, total = expand.parse_integer(call.words[1]) if len(call.words) > 1 else 1, path.variables.get("#")
    known = expand.parse_integer(total.text) if total is not None else None
    if known is None:
        return SUCCESS
    if count is None or not 0 <= count <= known:
        return UNKNOWN_STATUS
    arguments = [path.variables.get(str(n + 1), Value(UNKNOWN)) for n in range(known)]
    set_positional(path, [value.text for value in arguments[count:]])
    return SUCCESS


BUILTINS: dict[str, Status | Callable[["Executor", "Call", Path], Status | list[Path]]] = {
    **dict.fromkeys(("true", ":", "umask", "disown"), SUCCESS),
    **dict.fromkeys(("let", "ulimit", "bg", "fg", "getopts", "}"), UNKNOWN_STATUS),
    **dict.fromkeys(("export", "local", "declare", "readonly", "typeset"), _run_declare),
    **dict.fromkeys(("read", "mapfile", "readarray"), _run_read),
    "false": flow.known_status(1), "echo": _run_echo, "printf": _run_printf, "cd": _run_cd, "pushd": _run_cd, "popd": _run_popd, "pwd": _run_pwd,
    "exit": _run_exit, "return": _run_exit, "break": _run_jump, "continue": _run_jump, "set": _run_set, "unset": _run_unset, "alias": _run_alias,
    "unalias": _run_unalias, "shopt": _run_shopt, "trap": _run_trap, "wait": _run_wait, "kill": _run_kill, "eval": _run_eval, "source": _run_source,
    ".": _run_source, "hash": _run_hash, "enable": _run_enable, "shift": _run_shift, "sleep": _run_sleep,
    "test": _run_test, "[": _run_test,
}  # fmt: skip
