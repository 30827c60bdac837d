"""One simple command: wrappers are taken off, functions, aliases and nested shells followed, programs recorded."""

from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from holdfast.analysis.shell import expand
from holdfast.analysis.shell.builtins import (
    BUILTINS,
    is_harmless_source,
    run_builtin,
    set_options,
    set_positional,
    tampering_reason,
)
from holdfast.analysis.shell.filters import always_succeeds, classify_filter, filter_operands
from holdfast.analysis.shell.flow import (
    SUCCESS,
    UNKNOWN_STATUS,
    Invocation,
    OutputPiece,
    Path,
    Pieces,
    Status,
    Streams,
    Value,
)
from holdfast.analysis.shell.parse import ShellTooLarge, ShellUnreadable
from holdfast.analysis.shell.program_code import quote_word
from holdfast.analysis.shell.redirects import join_path
from holdfast.analysis.shell.syntax import UNKNOWN, Node, Simple, Word
from holdfast.analysis.shell.word_lists import word_list
from holdfast.analysis.shell.wrappers import ASSIGNMENT, Unwrapped, unwrap_command

if TYPE_CHECKING:
    from holdfast.analysis.shell.execute import Executor

SHELLS = frozenset(("bash", "sh", "zsh", "dash", "ksh", "ash"))
MAX_WRAPPERS = 20


class Call(msgspec.Struct):
    """A simple command whose words are expanded."""

    words: list[str]
    node: Simple
    environment: dict[str, str]
    streams: Streams
    wrappers: tuple[str, ...] = ()
    repeated: bool = False
    code_hidden: bool = False
    uncertain: bool = False
    checked: bool = False
    """Somebody looks at the status, so `set -e` does not end the shell inside of it."""

    @property
    def offset(self) -> int:
        """How many words of the text belong to wrappers, as far as words and fields agree."""
        return max(0, len(self.node.words) - len(self.words)) if self.wrappers else 0

    @property
    def own_words(self) -> list[Word]:
        """The words as written, behind the name of the program."""
        return list(self.node.words[self.offset + 1 :])

    @property
    def raw_last(self) -> str:
        """The name of the variable that the last word consists of."""
        parts = self.node.words[-1].parts if self.node.words else ()
        return parts[0].text if len(parts) == 1 and parts[0].kind == "variable" else ""


def run_call(executor: "Executor", call: Call, path: Path) -> list[Path]:
    name = call.words[0]
    if name == "!" and len(call.words) > 1:
        path.tamper("a negation that is not followed")
    # Behind any other wrapper the name is looked up on disk, never as an alias or a function.
    if not call.wrappers or call.wrappers[-1] in ("time", "coproc"):
        if (text := _alias_text(path, name, call.node.line)) is not None:
            return _run_alias(executor, call, path, text)
        if name in path.functions:
            return _run_function(executor, call, path)
    # `sudo echo` starts a program, `command echo` the builtin.
    of_the_shell = set(call.wrappers) <= {"command", "builtin", "time", "coproc"}
    if name in BUILTINS and of_the_shell:
        return run_builtin(executor, call, path)
    if name == "coproc" and not call.wrappers:
        return _run_coprocess(executor, call, path)
    if name in ("test", "[") and of_the_shell:
        words = call.own_words
        path.status = expand.evaluate_test(path, tuple(words[:-1] if name == "[" else words))
        return [path]
    return _run_program(executor, call, path)


def _run_coprocess(executor: "Executor", call: Call, path: Path) -> list[Path]:
    """`coproc CMD`: a job whose output goes into a pipe of the shell. What is read from that pipe is not followed."""
    words = call.words[1:]
    # The parser ends a block behind its first command: the rest of it is met as commands of their own.
    if "{" in words[:2]:
        words = words[words.index("{") + 1 :]
        path.tamper("a block as a coprocess is not followed")
    if not words:
        path.status = UNKNOWN_STATUS
        return [path]
    streams = msgspec.structs.replace(call.streams, stdin=None, stdout=executor.sink())
    inner = msgspec.structs.replace(call, words=words, streams=streams, wrappers=("coproc",))
    return executor.run_job(path, lambda: run_call(executor, inner, path))


# ── names that the command itself gave a meaning ─────────────────────────────────────────────────────────────────────


def _alias_text(path: Path, name: str, line: int) -> str | None:
    """An alias counts from the next line on, and in a script only after `shopt -s expand_aliases`."""
    alias = path.aliases.get(name)
    return alias[0] if alias and line > alias[1] else None


def _run_alias(executor: "Executor", call: Call, path: Path, text: str) -> list[Path]:
    # Whether it is expanded is not known: its text is read for rules, the name is followed as it stands.
    if "expand_aliases" not in path.options:
        executor.run_later.append(" ".join([text, *(quote_word(word) for word in call.words[1:])]))
        path.tamper(f"{call.words[0]} may be an alias")
        path.aliases = {k: v for k, v in path.aliases.items() if k != call.words[0]}
        return run_call(executor, call, path)
    _record_invocation(executor, call, path, shadowed=True)
    words = " ".join([text, *(quote_word(word) for word in call.words[1:])])
    # bash does not expand an alias inside of its own text.
    without = {k: v for k, v in path.aliases.items() if k != call.words[0]}
    path.aliases = without
    return executor.run(executor.parse(words), path, call.streams, True)


def _run_function(executor: "Executor", call: Call, path: Path) -> list[Path]:
    name = call.words[0]
    _record_invocation(executor, call, path, shadowed=True)
    before, outer = path.variables, executor.context
    set_positional(path, call.words[1:])
    executor.context = (*outer, id(call.node))
    paths = executor.run(path.functions[name], path, call.streams, call.checked)
    executor.context = outer
    for one in paths:
        one.control = "" if one.control == "return" else one.control
        # The caller's arguments are back, and those that only the function had are gone.
        for key in [name for name in one.variables if name.isdecimal()]:
            del one.variables[key]
        for key in ("@", "*", "#", "1", "2"):
            one.variables[key] = before.get(key, Value(UNKNOWN))
        one.variables |= {name: value for name, value in before.items() if name.isdecimal()}
    return paths


# ── programs ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _run_program(executor: "Executor", call: Call, path: Path) -> list[Path]:
    if _starts_nothing(call):
        path.status = SUCCESS
        return [path]
    unwrapped = unwrap_command(call.words)
    if unwrapped is not None:
        if len(call.wrappers) >= MAX_WRAPPERS:
            raise ShellTooLarge
        inner = msgspec.structs.replace(
            call,
            words=_with_input(call, unwrapped),
            environment={**call.environment, **unwrapped.environment},
            wrappers=(*call.wrappers, unwrapped.name),
            repeated=call.repeated or unwrapped.repeated,
            code_hidden=call.code_hidden or unwrapped.code_hidden,
            uncertain=call.uncertain or unwrapped.uncertain,
        )
        return _run_inside(executor, inner, path, unwrapped.directory)
    name = call.words[0].rpartition("/")[2]
    if name in SHELLS and UNKNOWN not in call.words[0]:
        return _run_shell(executor, call, path)
    script = _script_text(executor, path, call.words[0]) if "/" in call.words[0] else None
    if script is not None:
        return _run_nested(executor, call, path, script, call.words[1:], frozenset())
    return _run_plain(executor, call, path)


def _with_input(call: Call, unwrapped: Unwrapped) -> list[str]:
    """What xargs reads becomes arguments: all of it, or the first line in the place of the mark behind `-I`."""
    text = _stdin_text(call.streams.stdin) if unwrapped.name == "xargs" else None
    if not text:
        return unwrapped.words
    mark = next((word[2:] or after for word, after in pairwise(call.words) if word.startswith("-I")), "")
    if mark and len(text.splitlines()) == 1:
        return [word.replace(mark, text.strip()) for word in unwrapped.words]
    return (
        unwrapped.words if unwrapped.repeated else [*unwrapped.words, *text.replace("\0", " ").split()[:MAX_WRAPPERS]]
    )


def _starts_nothing(call: Call) -> bool:
    """`xargs -r` without input."""
    quiet = call.words[0] == "xargs" and any(w in ("-r", "--no-run-if-empty") for w in call.words[1:])
    return quiet and call.streams.stdin is not None and not call.streams.stdin


def _run_inside(executor: "Executor", call: Call, path: Path, directory: str) -> list[Path]:
    before = path.cwd
    if directory:
        path.cwd = join_path(path.cwd, directory)
    paths = run_call(executor, call, path)
    for one in paths:
        if directory:
            one.cwd = before
        # `exec CMD` replaces the shell: nothing behind it runs.
        if call.wrappers[-1] == "exec":
            one.control = one.control or "exit"
        if call.uncertain:
            one.status = UNKNOWN_STATUS
    return paths


def _run_plain(executor: "Executor", call: Call, path: Path) -> list[Path]:
    invocation = _record_invocation(executor, call, path)
    if call.uncertain:
        path.ran[invocation.index] = False
    how = classify_filter(call.words)
    streams = call.streams
    if how is not None and not any(
        word.startswith(("-i", "--in-place", "-pi")) for word in call.words[1:] if _edits_text(call.words)
    ):
        path.write(streams.stdout, _filtered_pieces(executor, call, path, how, invocation.index))
        # A filter fails where a file is missing; only those that the command wrote are surely there.
        known_input = all(executor.file_name(path, file) in path.outputs for file in filter_operands(call.words))
        path.status = SUCCESS if always_succeeds(call.words) and known_input else _invocation_status(invocation)
        _write_copies(executor, call, path)
        return [path]
    _spoil_files(executor, call, path)
    mine = OutputPiece(invocation.index)
    located = _located_program(call.words)
    path.write(streams.stdout, (OutputPiece(text=f"{located}\n"),) if located else (mine,))
    path.write(streams.stderr, (mine,))
    path.status = _invocation_status(invocation)
    return [path]


def _located_program(words: list[str]) -> str:
    """`$(which git)` is git: where a program lies is printed by those that look it up on the search path. So is a part
    of a path by those that cut it."""
    if words[:2] == ["command", "-v"] or (words[0] == "type" and words[1:2] in (["-p"], ["-P"])):
        words = words[1:]
    elif words[0] in ("dirname", "basename", "realpath") and len(words) == 2 and UNKNOWN not in words[1]:
        folder, _, name = words[1].rstrip("/").rpartition("/")
        return {"dirname": folder or ".", "basename": name, "realpath": words[1]}[words[0]]
    elif words[0].rpartition("/")[2] != "which":
        return ""
    return words[1] if len(words) == 2 and not words[1].startswith("-") else ""


def _invocation_status(invocation: Invocation) -> Status:
    return Status("of", invocation=invocation.index)


def _filtered_pieces(executor: "Executor", call: Call, path: Path, how: str, index: int) -> Pieces:
    """What comes out of a filter: its input changed, and text of its own where it reads unknown files."""
    name = call.words[0].rpartition("/")[2]
    files = [] if name == "tee" else filter_operands(call.words)
    if not files:
        pieces = call.streams.stdin
        if pieces is None:
            return (OutputPiece(index),)
    else:
        pieces = ()
        for file in files:
            source = executor.file_name(path, file)
            pieces += (
                path.outputs.get(source, (OutputPiece(index),)) if UNKNOWN not in source else (OutputPiece(index),)
            )
    # One line stays as it is when it is put into words without quotes (`_unquoted_piece`).
    one_line = (how == "tail" and any(word in ("-1", "-n1") for word in call.words)) or call.words[-2:] == ["-n", "1"]
    how = "tail1" if one_line and how == "tail" else how
    return tuple(piece.through(how) for piece in pieces)


def _edits_text(words: list[str]) -> bool:
    return words[0].rpartition("/")[2] in ("sed", "gsed", "perl", "awk", "gawk", "sort")


def _spoil_files(executor: "Executor", call: Call, path: Path) -> None:
    """A file that another program is given by name may hold something else afterwards."""
    for word in call.words[1:]:
        # A name that is not known cannot be found among the files that were written.
        name = executor.file_name(path, word) if UNKNOWN not in word else ""
        if name and path.outputs.get(name):
            spoiled = tuple(piece.through("rewritten") for piece in path.outputs[name])
            path.outputs[name] = (
                spoiled if call.words[0].rpartition("/")[2] not in word_list("readers") else path.outputs[name]
            )


def _write_copies(executor: "Executor", call: Call, path: Path) -> None:
    if call.words[0].rpartition("/")[2] != "tee":
        return
    for file in filter_operands(call.words):
        name = executor.file_name(path, file)
        old = path.outputs.get(name, ()) if "-a" in call.words else ()
        path.outputs[name] = old + (call.streams.stdin or (OutputPiece(text=UNKNOWN),))


def _record_invocation(executor: "Executor", call: Call, path: Path, shadowed: bool = False) -> Invocation:
    environment = {name: path.variables[name].text for name in path.exported if name in path.variables}
    environment |= call.environment
    tampered = path.tampered
    for name, value in call.environment.items():
        tampered = tampered or tampering_reason(name, value)
    made = Invocation(
        -1,
        call.words,
        path.cwd,
        environment,
        call.wrappers,
        call.streams.stdin,
        repeated=call.repeated,
        code_hidden=call.code_hidden,
        tampered=tampered,
        shadowed=shadowed,
        writes=tuple(s for s in (call.streams.stdout, call.streams.stderr) if not s.startswith("&") and s != "null"),
    )
    return executor.invocation(path, call.node, made)


# ── shells inside of the shell ───────────────────────────────────────────────────────────────────────────────────────


def _run_shell(executor: "Executor", call: Call, path: Path) -> list[Path]:
    flags, at, text_follows, from_stdin = [], 1, False, False
    while at < len(call.words) and call.words[at][:1] in ("-", "+") and len(call.words[at]) > 1:
        word = call.words[at]
        if word in ("--version", "--help"):
            return _run_plain(executor, call, path)
        if not word.startswith("--"):
            # Letters of one word are separate flags: `-ec` is `-e -c`.
            text_follows = text_follows or "c" in word[1:]
            from_stdin = from_stdin or "s" in word[1:]
            flags.append(word)
            if word.endswith("o") and at + 1 < len(call.words):
                at += 1
                flags.append(call.words[at])
        elif word in ("--rcfile", "--init-file"):
            at += 1
            name = call.words[at] if at < len(call.words) else ""
            executor.note_sourced(path, name)
            # Its functions stand before every program that the text names.
            if not is_harmless_source(name):
                path.tamper(f"{name} is read first and may define other commands")
        at += 1
    rest = call.words[at:]
    # Files that a new shell may read before its own text.
    for variable in ("BASH_ENV", "ENV"):
        executor.note_sourced(path, call.environment.get(variable, ""))
    # Text of the environment that the shell runs by itself: before a prompt, in one, or as a function of that name.
    executor.run_later += [call.environment[name] for name in ("PROMPT_COMMAND",) if call.environment.get(name)]
    executor.run_later += [
        f': "{call.environment[name]}"' for name in ("PS0", "PS1", "PS4") if name in call.environment
    ]
    executor.run_later += [f"f{value}; f" for name, value in call.environment.items() if name.startswith("BASH_FUNC_")]
    options = set_options(frozenset(), flags)
    if text_follows:
        # `sh -c TEXT NAME ARG ...`: the word behind the text is `$0`.
        text = rest[0] if rest else ""
        zeroth = rest[1] if len(rest) > 1 else ""
        return _run_nested(executor, call, path, None if UNKNOWN in text else text, rest[2:], options, zeroth)
    if rest and not from_stdin:
        script = _script_text(executor, path, rest[0])
        return (
            _run_nested(executor, call, path, script, rest[1:], options)
            if script is not None
            else _run_plain(executor, call, path)
        )
    return _run_nested(executor, call, path, _stdin_text(call.streams.stdin), rest, options)


def _stdin_text(pieces: Pieces | None) -> str | None:
    if pieces is None or any(p.invocation >= 0 or p.status or p.filters or UNKNOWN in p.text for p in pieces):
        return None
    return "".join(piece.text for piece in pieces)


def _script_text(executor: "Executor", path: Path, name: str) -> str | None:
    """The text of a script that this very command wrote, or that may be read from the repository."""
    file = executor.file_name(path, name)
    written = path.outputs.get(file)
    return _stdin_text(written) if written else None


def _run_nested(
    executor: "Executor",
    call: Call,
    path: Path,
    text: str | None,
    arguments: list[str],
    options: frozenset[str],
    zeroth: str = "",
) -> list[Path]:
    """A new shell: functions and options are not handed down, the folder and exported variables are."""
    node = _parse_or_none(executor, text)
    if node is None:
        return _run_plain(executor, call, path)
    before = path.clone()
    path.functions = {name: body for name, body in path.functions.items() if f"{name}()" in path.exported}
    path.aliases, path.options, path.trap = {}, options, None
    # Captured substitutions lie among the variables under names that begin with `$(`.
    path.variables = {k: v for k, v in path.variables.items() if k in path.exported or k.startswith("$(")}
    for name, value in call.environment.items():
        path.variables[name] = Value(value)
        path.tamper(tampering_reason(name, value))
    path.exported |= frozenset(call.environment)
    set_positional(path, arguments)
    if zeroth:
        path.variables = {**path.variables, "0": Value(zeroth)}
    outer = executor.context
    # A nested text can be reached by several calls; each gets invocations of its own.
    executor.context = (*outer, id(call.node))
    if call.repeated:
        executor.looping += 1
    paths = [done for one in executor.run(node, path, call.streams) for done in finish_shell(executor, one)]
    if call.repeated:
        executor.looping -= 1
    executor.context = outer
    for one in paths:
        one.restore_shell(before)
        if call.uncertain or call.code_hidden:
            one.status = UNKNOWN_STATUS
    return paths


def _parse_or_none(executor: "Executor", text: str | None) -> Node | None:
    if text is None:
        return None
    try:
        return executor.parse(text)
    except ShellUnreadable:
        return None


def finish_shell(executor: "Executor", path: Path) -> list[Path]:
    """The end of a shell: its EXIT trap runs and may give another status."""
    trap, status = path.trap, path.status
    if trap is None:
        return [path]
    # Taken off first, so that the trap's own end does not run it again.
    path.trap, path.control = None, ""
    paths = executor.run(trap, path, Streams(), True)
    for one in paths:
        if one.control != "exit":
            one.status = status
        one.control = "exit"
    return paths


__all__ = ["ASSIGNMENT", "Call", "finish_shell", "run_call"]
