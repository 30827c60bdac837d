"""One simple command: wrappers are taken off, functions, aliases and nested shells followed, programs recorded."""

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from holdfast.analysis.shell import builtins, expand, flow
from holdfast.analysis.shell.filters import always_succeeds, classify_filter, filter_operands
from holdfast.analysis.shell.flow import SUCCESS, UNKNOWN_STATUS, OutputPiece, Path, Pieces, Status, Streams, Value
from holdfast.analysis.shell.parse import ShellTooLarge
from holdfast.analysis.shell.program_code import quote_word
from holdfast.analysis.shell.redirects import file_name, join_path
from holdfast.analysis.shell.syntax import UNKNOWN, Simple, Word
from holdfast.analysis.shell.word_lists import word_list
from holdfast.analysis.shell.wrappers import Unwrapped, unwrap_command

if TYPE_CHECKING:
    from holdfast.analysis.shell.execute import Executor

SHELLS = frozenset(("bash", "sh", "zsh", "dash", "ksh", "ash"))
MAX_WRAPPERS = 20
_EDIT_TEXT = frozenset(("sed", "gsed", "perl", "awk", "gawk", "sort"))
_SHELL_WRAPPERS = frozenset(("command", "builtin", "time", "coproc"))


class Call(msgspec.Struct):
    """A simple command whose words are expanded."""

    words: list[str]
    node: Simple
    environment: dict[str, str]
    streams: Streams
    wrappers: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
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
    if name == "!":
        path.tamper("a negation that is not followed")
    # Behind any other wrapper the name is looked up on disk, never as an alias or a function.
    if not call.wrappers or call.wrappers[-1] in ("time", "coproc"):
        if (text := _alias_text(path, name, call.node.line)) is not None:
            return _run_alias(executor, call, path, text)
        if name in path.functions:
            return _run_function(executor, call, path)
    if name == "coproc" and not call.wrappers:
        return _run_coprocess(executor, call, path)
    # `sudo echo` starts a program, `command echo` the builtin.
    of_the_shell = _SHELL_WRAPPERS.issuperset(call.wrappers)
    return (builtins.run_builtin if of_the_shell and name in builtins.BUILTINS else _run_program)(executor, call, path)


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
    name, spelled = call.words[0], " ".join([text, *map(quote_word, call.words[1:])])
    # bash does not expand an alias inside of its own text.
    path.aliases = {k: v for k, v in path.aliases.items() if k != name}
    if "expand_aliases" in path.options:
        _record_invocation(executor, call, path, shadowed=True)
        return executor.run(executor.parse(spelled), path, call.streams, True)
    # Whether it is expanded is not known: its text is read for rules, the name is followed as written.
    executor.run_later.append(spelled)
    path.tamper(f"{name} may be an alias")
    return run_call(executor, call, path)


def _run_function(executor: "Executor", call: Call, path: Path) -> list[Path]:
    name = call.words[0]
    _record_invocation(executor, call, path, shadowed=True)
    before, outer = path.variables, executor.context
    builtins.set_positional(path, call.words[1:])
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
    if (unwrapped := unwrap_command(call.words)) is not None:
        return _run_unwrapped(executor, call, path, unwrapped)
    name = call.words[0].rpartition("/")[2]
    if name in SHELLS and UNKNOWN not in call.words[0]:
        return _run_shell(executor, call, path)
    script = _script_text(executor, path, call.words[0]) if "/" in call.words[0] else None
    return _run_nested(executor, call, path, script, call.words[1:])


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


def _run_unwrapped(executor: "Executor", call: Call, path: Path, unwrapped: Unwrapped) -> list[Path]:
    if len(call.wrappers) >= MAX_WRAPPERS:
        raise ShellTooLarge
    inner = msgspec.structs.replace(
        call,
        words=_with_input(call, unwrapped),
        environment={**call.environment, **unwrapped.environment},
        wrappers=(*call.wrappers, unwrapped.name),
        packages=(*call.packages, *unwrapped.packages),
        repeated=call.repeated or unwrapped.repeated,
        code_hidden=call.code_hidden or unwrapped.code_hidden,
        uncertain=call.uncertain or unwrapped.uncertain,
    )
    before = path.cwd
    path.cwd = join_path(before, unwrapped.directory) if unwrapped.directory else before
    paths = run_call(executor, inner, path)
    # `exec CMD` replaces the shell: nothing behind it runs.
    leaves = "exit" if unwrapped.name == "exec" else ""
    for one in paths:
        one.cwd = before if unwrapped.directory else one.cwd
        one.control = one.control or leaves
        one.status = UNKNOWN_STATUS if inner.uncertain else one.status
    return paths


def _run_plain(executor: "Executor", call: Call, path: Path) -> list[Path]:
    index = _record_invocation(executor, call, path).index
    if call.uncertain:
        path.ran[index] = False
    path.status = Status("of", invocation=index)
    streams, how = call.streams, classify_filter(call.words)
    if how is None or _edits_in_place(call.words):
        _spoil_files(executor, call, path)
        located, mine = _located_program(call.words), OutputPiece(index)
        path.write(streams.stdout, (OutputPiece(text=f"{located}\n"),) if located else (mine,))
        path.write(streams.stderr, (mine,))
        return [path]
    path.write(streams.stdout, _filtered_pieces(executor, call, path, how, index))
    # A filter fails where a file is missing; only those that the command wrote are surely there.
    known_input = all(file_name(path, file) in path.outputs for file in filter_operands(call.words))
    if always_succeeds(call.words) and known_input:
        path.status = SUCCESS
    _write_copies(executor, call, path)
    return [path]


def _edits_in_place(words: list[str]) -> bool:
    name = words[0].rpartition("/")[2]
    return name in _EDIT_TEXT and any(word.startswith(("-i", "--in-place", "-pi")) for word in words[1:])


def _located_program(words: list[str]) -> str:
    """`$(which git)` is git: where a program lies is printed by those that look it up on the search path. So is a part
    of a path by those that cut it."""
    name = words[0].rpartition("/")[2]
    if len(words) == 2 and words[0] in _CUT_PATHS and UNKNOWN not in words[1]:
        return _CUT_PATHS[words[0]](words[1])
    looked_up = words[1:] if words[:2] in (["command", "-v"], ["type", "-p"], ["type", "-P"]) else words
    if looked_up is words and name != "which":
        return ""
    return looked_up[1] if len(looked_up) == 2 and not looked_up[1].startswith("-") else ""


_CUT_PATHS: dict[str, Callable[[str], str]] = {
    "dirname": lambda path: path.rstrip("/").rpartition("/")[0] or ".",
    "basename": lambda path: path.rstrip("/").rpartition("/")[2],
    "realpath": lambda path: path,
}


def _filtered_pieces(executor: "Executor", call: Call, path: Path, how: str, index: int) -> Pieces:
    """What comes out of a filter: its input changed, and text of its own where it reads unknown files."""
    pieces = call.streams.stdin
    # `tee` is given the files that it writes.
    if files := filter_operands(call.words) if not _is_tee(call) else []:
        pieces = tuple(piece for file in files for piece in executor.file_pieces(path, file, OutputPiece(index)))
    if pieces is None:
        return (OutputPiece(index),)
    # One line stays as it is when it is put into words without quotes (`_unquoted_piece`).
    one_line = how == "tail" and (not {"-1", "-n1"}.isdisjoint(call.words) or call.words[-2:] == ["-n", "1"])
    return tuple(piece.through("tail1" if one_line else how) for piece in pieces)


def _is_tee(call: Call) -> bool:
    return call.words[0].rpartition("/")[2] == "tee"


def _spoil_files(executor: "Executor", call: Call, path: Path) -> None:
    """A file that another program is given by name may hold something else afterwards."""
    for word in call.words[1:]:
        # A name that is not known cannot be found among the files that were written.
        name = file_name(path, word) if UNKNOWN not in word else ""
        if name and path.outputs.get(name):
            spoiled = tuple(piece.through("rewritten") for piece in path.outputs[name])
            path.outputs[name] = (
                spoiled if call.words[0].rpartition("/")[2] not in word_list("readers") else path.outputs[name]
            )


def _write_copies(executor: "Executor", call: Call, path: Path) -> None:
    if not _is_tee(call):
        return
    for file in filter_operands(call.words):
        name = file_name(path, file)
        old = path.outputs.get(name, ()) if "-a" in call.words else ()
        path.outputs[name] = old + (call.streams.stdin or (OutputPiece(text=UNKNOWN),))


def _record_invocation(executor: "Executor", call: Call, path: Path, shadowed: bool = False) -> flow.Invocation:
    environment = {name: path.variables[name].text for name in path.exported if name in path.variables}
    environment |= call.environment
    tampered = path.tampered
    for name, value in call.environment.items():
        tampered = tampered or builtins.tampering_reason(name, value)
    made = flow.Invocation(
        -1,
        call.words,
        path.cwd,
        environment,
        call.wrappers,
        call.streams.stdin,
        packages=call.packages,
        repeated=call.repeated,
        code_hidden=call.code_hidden,
        tampered=tampered,
        shadowed=shadowed,
        writes=tuple(s for s in (call.streams.stdout, call.streams.stderr) if not s.startswith("&") and s != "null"),
    )
    return executor.invocation(path, call.node, made)


# ── shells inside of the shell ───────────────────────────────────────────────────────────────────────────────────────


class _ShellWords(msgspec.Struct):
    """`bash -ec TEXT NAME ARG …`, taken apart."""

    flags: list[str] = []
    letters: str = ""
    """Letters of one word are separate flags: `-ec` is `-e -c`."""
    read_first: list[str] = []
    rest: list[str] = []


def _split_shell_words(words: list[str]) -> _ShellWords:
    call, at = _ShellWords(), 1
    while at < len(words) and words[at][:1] in ("-", "+") and len(words[at]) > 1:
        word, following = words[at], words[at + 1 : at + 2]
        if word in ("--rcfile", "--init-file"):
            call.read_first += following or [""]
            at += 1
        elif not word.startswith("--"):
            call.flags.append(word)
            call.letters += word[1:]
            if word.endswith("o") and following:
                call.flags += following
                at += 1
        at += 1
    call.rest = words[at:]
    return call


def _run_shell(executor: "Executor", call: Call, path: Path) -> list[Path]:
    words = _split_shell_words(call.words)
    if not {"--version", "--help"}.isdisjoint(call.words[: len(call.words) - len(words.rest)]):
        return _run_plain(executor, call, path)
    for name in words.read_first:
        executor.note_sourced(path, name)
        # Its functions stand before every program that the text names.
        if not builtins.is_harmless_source(name):
            path.tamper(f"{name} is read first and may define other commands")
    _note_environment(executor, call, path)
    options, rest = builtins.set_options(frozenset(), words.flags), words.rest
    if "c" in words.letters:
        # `sh -c TEXT NAME ARG ...`: the word behind the text is `$0`.
        text = "".join(rest[:1])
        known = None if UNKNOWN in text else text
        return _run_nested(executor, call, path, known, rest[2:], options, "".join(rest[1:2]))
    if rest and "s" not in words.letters:
        return _run_nested(executor, call, path, _script_text(executor, path, rest[0]), rest[1:], options)
    return _run_nested(executor, call, path, _stdin_text(call.streams.stdin), rest, options)


def _note_environment(executor: "Executor", call: Call, path: Path) -> None:
    """Files that a new shell reads before its own text, and texts that it runs by itself."""
    for variable in ("BASH_ENV", "ENV"):
        executor.note_sourced(path, call.environment.get(variable, ""))
    for name, value in call.environment.items():
        if name == "PROMPT_COMMAND" and value:
            executor.run_later.append(value)
        elif name in ("PS0", "PS1", "PS4"):
            executor.run_later.append(f': "{value}"')
        elif name.startswith("BASH_FUNC_"):
            executor.run_later.append(f"f{value}; f")


def _stdin_text(pieces: Pieces | None) -> str | None:
    if pieces is None or any(piece.filters for piece in pieces):
        return None
    return expand.plain_text(pieces)


def _script_text(executor: "Executor", path: Path, name: str) -> str | None:
    """The text of a script that this very command wrote, or that may be read from the repository."""
    written = path.outputs.get(file_name(path, name))
    return _stdin_text(written) if written else None


def _run_nested(
    executor: "Executor",
    call: Call,
    path: Path,
    text: str | None,
    arguments: list[str],
    options: frozenset[str] = frozenset(),
    zeroth: str = "",
) -> list[Path]:
    """A new shell that runs a text; a program like any other where the text is not known."""
    node = executor.parse_or_none(text)
    if node is None:
        return _run_plain(executor, call, path)
    before = path.clone()
    _enter_shell(path, call, options)
    builtins.set_positional(path, arguments)
    if zeroth:
        path.variables = {**path.variables, "0": Value(zeroth)}
    outer = executor.context
    # A nested text can be reached by several calls; each gets invocations of its own.
    executor.context = (*outer, id(call.node))
    executor.looping += call.repeated
    paths = [done for one in executor.run(node, path, call.streams) for done in finish_shell(executor, one)]
    executor.looping -= call.repeated
    executor.context = outer
    for one in paths:
        one.restore_shell(before)
        if call.uncertain or call.code_hidden:
            one.status = UNKNOWN_STATUS
    return paths


def _enter_shell(path: Path, call: Call, options: frozenset[str]) -> None:
    """Functions and options are not handed down, the folder and exported variables are."""
    path.functions = {name: body for name, body in path.functions.items() if f"{name}()" in path.exported}
    path.aliases, path.options, path.trap = {}, options, None
    # Captured substitutions lie among the variables under names that begin with `$(`.
    path.variables = {k: v for k, v in path.variables.items() if k in path.exported or k.startswith("$(")}
    for name, value in call.environment.items():
        path.variables[name] = Value(value)
        path.tamper(builtins.tampering_reason(name, value))
    path.exported |= frozenset(call.environment)


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
