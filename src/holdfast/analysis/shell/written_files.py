"""The files a command is about to write, from its parse alone: redirections, programs that write, code given in quotes."""

import itertools
import re
from collections.abc import Callable
from functools import cache

import msgspec

from holdfast.analysis.shell.analysis import Analysis, Ran, ShellCommand
from holdfast.analysis.shell.flow import TERMINAL, literal_text
from holdfast.analysis.shell.git_words import split_git
from holdfast.analysis.shell.program_code import CODE_FLAGS, awk_writes, code_writes, is_interpreter, sed_acts
from holdfast.analysis.shell.redirects import join_path
from holdfast.analysis.shell.syntax import UNKNOWN
from holdfast.analysis.shell.word_lists import by_single_name, word_list
from holdfast.core.data_files import load_data
from holdfast.core.lazy import lazy_pattern

MAX_FILES = 200
# Commands of an editor that write: `:w`, `:wq`, `:x`, `:update`, `:wa`. Group: the file, where one is named.
_EDITOR_WRITES = lazy_pattern(r"^:?(?:w|wq|write|x|xit|update|up|wa|wqa|xa|saveas)(?:!|\s|$)\s*(\S*)")
_EDITOR_OPENS = lazy_pattern(r"^:?(?:e|edit|new|vsp|split|tabe|badd)!?\s+(\S+)")
_EDITOR_COMMANDS = frozenset(("-c", "--cmd", "-S"))
_EDITOR_VALUES = _EDITOR_COMMANDS | {"-u", "-i", "-T"}
_SQLITE_WRITES = lazy_pattern(r"""writefile\(\s*'([^'\n]+)'|\.(?:output|once|backup|dump|save)\s+([^\s'"]+)""")
_CHECKS_ONLY = lazy_pattern(
    r"^(?:--check\S*|-check\S*|--diff|--dry-run|-n|-l|--list-different|--no-write|-write=false)$"
)
_FORMATTER_VERBS = frozenset(("fmt", "format", "check", "lint", "run"))
# Options that name an output in most programs.
_OUTPUT_NAMES = "--output --out --outfile --output-file --output-dir --out-dir --outdir --dest".split()
# Lines that name a file: of a unified diff, of `apply_patch`, of git's renames.
_PATCHED = lazy_pattern(
    r"^(?:\+\+\+ (?:b/)?|--- (?:a/)?|\*\*\* (?:Update|Add|Delete) File: |\*\*\* Move to: |rename to )(\S.*?)\s*$", re.M
)
_LISTED = lazy_pattern(
    r"""\b(?:grep|rg|git grep)\s+(?:-\S+\s+)*(?:'[^']*'|"[^"]*"|\S+)((?:\s+[^\s|;&<>]+)+)\s*\|\s*xargs"""
)
"""`grep -l PATTERN FOLDER … | xargs`: where the files lie that are handed on."""
# The folders behind `find`, up to its first option or the end of the command.
_FIND = lazy_pattern(r"""\bfind\s+((?:[^-\s(!;|&][^\s;|&]*\s+)+)""")
_FILE_ENDING = re.compile(r"(?<=\w)\.[A-Za-z]\w{0,4}$")


class _Writer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of `written_files.toml`, which says what the fields mean."""

    only: str = ""
    never: str = ""
    unless: str = ""
    operands: str = ""
    operand: str = ""
    least: int = 0
    values: str = ""
    folders: str = ""
    prefix: str = ""
    without: str = ""
    skips: int = 0
    file_names: bool = False

    def fits(self, words: list[str]) -> bool:
        stopped = self.never and self.never in words and self.unless not in words
        return not stopped and (not self.only or any(re.search(self.only, word) for word in words[1:]))

    def files(self, words: list[str]) -> list[str]:
        files = _flag_values(words, self.values.split())
        files += [f"{folder}/**" for folder in _flag_values(words, self.folders.split())]
        files += [word.removeprefix(self.prefix) for word in words if self.prefix and word.startswith(self.prefix)]
        if self.file_names and "--" not in words:
            return [word for word in words[1:] if _FILE_ENDING.search(word)]
        return files + (self._operands(words) if self.operands else [])

    def _operands(self, words: list[str]) -> list[str]:
        after = words[words.index("--") :] if self.file_names else words
        operands = _plain_operands(after, self.operand)
        if len(operands) < self.least:
            return []
        bounds = (int(bound) if bound else None for bound in self.operands.split(":"))
        return operands[slice(*bounds)] or ([self.without] if self.without else [])


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    writers: dict[str, list[_Writer]]
    formatters: dict[str, _Writer]
    git: dict[str, _Writer]


@cache
def _table() -> _Table:
    table = load_data(__file__, "written_files", _Table)
    return _Table(by_single_name(table.writers), by_single_name(table.formatters), by_single_name(table.git))


def written_files(analysis: Analysis, text: str) -> list[str]:
    """Paths joined with the folder the command is in at that moment; those whose name is not known are left out."""
    files: dict[str, None] = {}
    for path in analysis.paths:
        for sink in path.outputs:
            if sink != TERMINAL:
                files[sink] = None
    for command in analysis.commands:
        if command.ran is not Ran.NO:
            for name in (*command.invocation.writes, *_expand_found(_program_writes(command), text)):
                files[join_path(command.invocation.cwd, name)] = None
    return [name for name in files if _is_file(name)][:MAX_FILES]


WHOLE_TREE = "**"
"""Stands for every file: git put another content in place."""


def _replaces_tree(words: list[str]) -> bool:
    """`git stash` and `git reset --hard`: the files differ from what was tested before."""
    if words[0].rpartition("/")[2] != "git":
        return False
    call = split_git(words)
    if call.verb == "stash":
        first = next((word for word in call.arguments if not word.startswith("-")), "")
        return first in ("", "push", "save", "pop", "apply", "branch")
    return call.verb == "reset" and any(word in ("--hard", "--merge", "--keep") for word in words)


def written_after(analysis: Analysis, index: int) -> list[str]:
    """Files that the command writes after one of its programs was started."""
    return _written_where(analysis, lambda at: at > index)


def put_back_after(analysis: Analysis, index: int) -> list[str]:
    """Files that it writes before that program and again after it: what the program saw of them is gone."""
    before = set(_written_where(analysis, lambda at: at < index))
    before |= {name for at, name in analysis.redirected if at == index}
    return [name for name in written_after(analysis, index) if name in before]


def _written_where(analysis: Analysis, counts: Callable[[int], bool]) -> list[str]:
    found = [name for before, name in analysis.redirected if counts(before)]
    for command in analysis.commands:
        if command.ran is not Ran.NO and counts(command.invocation.index):
            found += [WHOLE_TREE] if _replaces_tree(command.words) else []
            found += [join_path(command.invocation.cwd, name) for name in _program_writes(command)]
    return [name for name in dict.fromkeys(found) if _is_file(name)][:MAX_FILES]


def patched_files(text: str) -> list[str]:
    """The files that a patch names, in git's form or in that of `apply_patch`."""
    return [name for name in dict.fromkeys(_PATCHED.findall(text)) if name != "/dev/null"]


def _is_file(name: str) -> bool:
    return bool(name) and UNKNOWN not in name and not name.startswith(("&", "/dev/", "/proc/"))


def _program_writes(command: ShellCommand) -> list[str]:
    words = command.words
    name = words[0].rpartition("/")[2]
    if by_content := _BY_CONTENT.get(name):
        return by_content(command)
    if name in _table().formatters:
        return _formatted_files(_table().formatters[name], words)
    rows = _table().writers.get(name, ())
    if row := next((row for row in rows if row.fits(words)), None):
        return row.files(words)
    if by_script := _BY_SCRIPT.get(name):
        return by_script(words[1:])
    outputs = [] if rows else _named_outputs(words)
    if is_interpreter(name):
        return outputs or code_writes(code_of(command))
    return outputs or (_copied_target(words) if name in word_list("copiers") else [])


def _named_outputs(words: list[str]) -> list[str]:
    named = _flag_values(words, _OUTPUT_NAMES)
    # Without a dot or a slash the value is mostly a format (`--output json`), not a file.
    return [value for value in named if "/" in value or "." in value or "-dir" in " ".join(words)]


def _patch_writes(command: ShellCommand) -> list[str]:
    patch = literal_text(command.invocation.stdin) + "\n".join(command.words[1:])
    return [*_plain_operands(command.words)[:1], *patched_files(patch)]


def _sqlite_writes(command: ShellCommand) -> list[str]:
    text = " ".join(command.words[1:]) + "\n" + literal_text(command.invocation.stdin)
    return [first or second for first, second in _SQLITE_WRITES.findall(text)]


def _find_writes(command: ShellCommand) -> list[str]:
    """The folders that `find` searches are all words before its first test."""
    roots = itertools.takewhile(lambda word: not word.startswith(("-", "(", "!")), command.words[1:])
    return [f"{root.rstrip('/')}/**" for root in list(roots) or ["."]] if "-delete" in command.words else []


def _git_writes(command: ShellCommand) -> list[str]:
    call = split_git(command.words)
    words = [call.verb, *call.arguments]
    if call.verb == "config":
        # Only what sets something: a key and a value next to the file.
        file = _flag_values(words, ["-f", "--file"])
        operands = [word for word in _plain_operands(words) if word not in (*file, "set", "get", "list")]
        return file if len(operands) > 1 else []
    if call.verb in ("apply", "am"):
        looks = any(word in ("--check", "--stat", "--numstat") for word in words)
        return [] if looks else patched_files(literal_text(command.invocation.stdin))
    row = _table().git.get(call.verb)
    return row.files(words) if row and row.fits(words) else []


def _edited_files(command: ShellCommand) -> list[str]:
    """An editor writes the files that it is given, unless its commands do not write."""
    given, operands = _editor_words(command.words)
    acts = "|".join(given).split("|")
    writes = [match[1] for act in acts if (match := _EDITOR_WRITES.match(act.strip()))]
    if given and not writes:
        return [] if any(re.match(r"^:?q", text) for text in given) else operands
    opened = [match[1] for text in given if (match := _EDITOR_OPENS.match(text.strip()))]
    return [*operands, *opened, *filter(None, writes)]


def _editor_words(words: list[str]) -> tuple[list[str], list[str]]:
    """The commands that an editor is given, and the files."""
    given, operands = [], []
    for before, word in itertools.pairwise(words):
        if before in _EDITOR_COMMANDS or word.startswith("+"):
            given.append(word.removeprefix("+"))
        elif not word.startswith("-") and before not in _EDITOR_VALUES:
            operands.append(word)
    return given, operands


def _copied_target(words: list[str]) -> list[str]:
    """`docker cp c:/x FILE`, `aws s3 cp s3://b/x FILE`: the last operand, where it is no address."""
    verbs = [at for at, word in enumerate(words[1:4], 1) if word in ("cp", "copy", "copyto", "mv", "sync", "download")]
    operands = [word for word in words[verbs[0] + 1 :] if not word.startswith("-")] if verbs else []
    return [operands[-1]] if len(operands) > 1 and not re.match(r"^[\w.-]*:", operands[-1]) else []


_BY_CONTENT: dict[str, Callable[[ShellCommand], list[str]]] = {
    "git": _git_writes,
    "find": _find_writes,
    **dict.fromkeys(("patch", "apply_patch", "applypatch"), _patch_writes),
    **dict.fromkeys(("sqlite3", "sqlite"), _sqlite_writes),
    **dict.fromkeys(("ed", "ex", "vi", "vim", "nvim"), _edited_files),
}


_BY_SCRIPT: dict[str, Callable[[list[str]], list[str]]] = {
    **dict.fromkeys(("sed", "gsed"), lambda scripts: sed_acts(scripts)[1]),
    **dict.fromkeys(("awk", "gawk", "mawk"), lambda scripts: awk_writes(" ".join(scripts))),
}


def _plain_operands(words: list[str], operand: str = "") -> list[str]:
    """Words that are no options; what follows `--` never is one. `operand`: options that are operands all the same."""
    at = words.index("--") if "--" in words else len(words)
    before = (w for w in words[1:at] if not w.startswith("-") or w == "-" or (operand and re.search(operand, w)))
    return [*before, *words[at + 1 :]]


def _formatted_files(row: _Writer, words: list[str]) -> list[str]:
    """Without `.`: what a formatter changes in a whole worktree shows afterwards."""
    if any(_CHECKS_ONLY.match(word) for word in words[1:]) or not row.fits(words):
        return []
    operands = [word for word in _plain_operands(words) if word not in _FORMATTER_VERBS][row.skips :]
    folders = [word.partition("=")[2] for word in words if word.startswith("-chdir=")]
    return [word for word in (*operands, *folders) if word.strip("./*")]


def _expand_found(names: list[str], text: str) -> list[str]:
    """`find infra … -exec sed -i … {} +`: anything below the folders that were searched."""
    plain = [name for name in names if "{}" not in name]
    if len(plain) == len(names):
        return names
    roots = " ".join(_FIND.findall(text)).split()
    if not roots:
        listed = " ".join(_LISTED.findall(text)).split()
        roots = [root for root in listed if root.strip("./") and not root.startswith(("-", "'", '"'))]
    return [*plain, *(f"{root.rstrip('/')}/**" for root in roots)]


def _flag_values(words: list[str], flags: list[str]) -> list[str]:
    letters = {flag[1] for flag in flags if len(flag) == 2}
    values = [
        after
        for word, after in itertools.pairwise(words)
        # `curl -sSLo FILE`: the last letter takes the next word.
        if word in flags or (re.fullmatch(r"-[a-zA-Z]{2,6}", word) and word[-1] in letters)
    ]
    return values + [word.partition("=")[2] for word in words if "=" in word and word.partition("=")[0] in flags]


def code_of(command: ShellCommand) -> str:
    """The text that an interpreter is given to run: behind `-c` or `-e`, or on its input."""
    words = command.words
    code_texts = [after for word, after in itertools.pairwise(words) if word in CODE_FLAGS]
    reads_input = len(words) == 1 or words[1] == "-" or words[0].rpartition("/")[2] in ("ed", "ex", "sqlite3", "sqlite")
    if not code_texts and reads_input:
        code_texts = [literal_text(command.invocation.stdin)]
    return "\n".join(code_texts)
