"""The files a command is about to write, from its parse alone: redirections, programs that write, code given in quotes."""

import itertools
import re
from collections.abc import Callable

from holdfast.analysis.shell.analysis import Analysis, Ran, ShellCommand
from holdfast.analysis.shell.flow import TERMINAL, Pieces
from holdfast.analysis.shell.program_code import CODE_FLAGS, INTERPRETER, awk_writes, code_writes, sed_acts
from holdfast.analysis.shell.redirects import join_path
from holdfast.analysis.shell.syntax import UNKNOWN
from holdfast.core.lazy import lazy_pattern

MAX_FILES = 200
_ALL_OPERANDS = frozenset(
    "rm touch truncate tee sponge unlink shred mv patch nano emacs mkdir rmdir mkfifo dos2unix unix2dos".split()
)
_EDITORS = frozenset(("ed", "ex", "vi", "vim", "nvim"))
# Commands of an editor that write: `:w`, `:wq`, `:x`, `:update`, `:wa`. Group: the file, where one is named.
_EDITOR_WRITES = lazy_pattern(r"^:?(?:w|wq|write|x|xit|update|up|wa|wqa|xa|saveas)(?:!|\s|$)\s*(\S*)")
_EDITOR_OPENS = lazy_pattern(r"^:?(?:e|edit|new|vsp|split|tabe|badd)!?\s+(\S+)")
_SQLITE_WRITES = lazy_pattern(r"""writefile\(\s*'([^'\n]+)'|\.(?:output|once|backup|dump|save)\s+([^\s'"]+)""")
_WITHOUT_FIRST = frozenset(("chmod", "chown", "chgrp", "setfacl", "chattr"))
"""Their first operand is the mode or the owner."""
# An empty pattern: these write unless they are told only to check.
_FORMATTERS: dict[str, re.Pattern[str]] = {
    **dict.fromkeys(("black", "isort", "autopep8", "yapf", "autoflake", "pyupgrade", "yamlfmt", "taplo"), re.compile(r"")),
    **dict.fromkeys(("prettier", "biome"), re.compile(r"^(?:--write|-w|--fix|--apply\S*)$")),
    **dict.fromkeys(("eslint", "stylelint", "rubocop", "rome", "markdownlint", "standard", "oxlint"), re.compile(r"^(?:--fix\S*|-[aA]|--auto\S*)$")),
    **dict.fromkeys(("gofmt", "goimports", "hclfmt", "shfmt", "gofumpt"), re.compile(r"^-\w*w\w*$")),
    **dict.fromkeys(("clang-format", "yq", "rustfmt", "sd", "xmllint", "gsed"), re.compile(r"^-i$|^--in-?place$")),
    "ruff": re.compile(r"^(?:format|--fix\S*)$"),
    **dict.fromkeys(("terraform", "tofu", "cargo", "buf", "dprint", "mix"), re.compile(r"^(?:fmt|format)$")),
}  # fmt: skip
"""Program → the word that makes it write; what it is given are files and folders that it writes."""
_CHECKS_ONLY = lazy_pattern(
    r"^(?:--check\S*|-check\S*|--diff|--dry-run|-n|-l|--list-different|--no-write|-write=false)$"
)
_FORMATTER_VERBS = frozenset(("fmt", "format", "check", "lint", "run"))
_LAST_OPERAND = frozenset(("cp", "install", "rsync", "scp"))
_COPIERS = frozenset(
    "docker podman nerdctl kubectl oc aws gsutil gcloud rclone mc s3cmd az lxc incus multipass".split()
)
_IN_PLACE = frozenset(("sed", "gsed", "perl", "ruby"))
_IN_PLACE_FLAG = lazy_pattern(r"^(?:-[a-zA-Z0-9]*i|--in-place)")
_OUTPUT_FLAGS = {
    "curl": ("-o", "--output"),
    "wget": ("-O", "--output-document"),
    "sort": ("-o", "--output"),
    "jq": (),
    "openssl": ("-out",),
    "pandoc": ("-o", "--output"),
    "gcc": ("-o",),
    "cc": ("-o",),
    "uniq": (),
    "split": (),
    "tar": ("-f",),
    "zip": (),
    "script": (),
}
_OUTPUT_NAMES = ("--output", "--out", "--outfile", "--output-file", "--output-dir", "--out-dir", "--outdir", "--dest")
_OUTPUT = lazy_pattern(r"^--(?:out|dest)")
_TARGET_FLAGS = ("-t", "--target-directory")
_GIT_WRITES = frozenset(("mv", "rm", "restore", "checkout"))
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
    """`git stash` and `git reset --hard`: what was tried before is not what lies there afterwards."""
    if words[0].rpartition("/")[2] != "git":
        return False
    named = [word for word in words[1:] if not word.startswith("-")]
    if named[:1] == ["stash"]:
        return named[1:2] in ([], ["push"], ["save"], ["pop"], ["apply"], ["branch"])
    return named[:1] == ["reset"] and any(word in ("--hard", "--merge", "--keep") for word in words)


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
    if name == "git":
        return _git_writes(words, command.invocation.stdin)
    if name in ("patch", "apply_patch", "applypatch"):
        return [
            *_plain_operands(words)[:1],
            *patched_files(_literal_text(command.invocation.stdin) + "\n".join(words[1:])),
        ]
    if name in _ALL_OPERANDS:
        return _plain_operands(words)
    if name == "ln":
        # A hard link is another name of the same content: whoever writes to one writes to both.
        return (
            _plain_operands(words)[-1:] if any("s" in w for w in words[1:] if w[:1] == "-") else _plain_operands(words)
        )
    if name in _WITHOUT_FIRST:
        # `chmod -x FILE`: the mode looks like an option.
        skipped = 0 if name == "chmod" and any(re.fullmatch(r"-[rwxXst]+", word) for word in words[1:]) else 1
        return _plain_operands(words)[skipped:]
    if name in ("sqlite3", "sqlite"):
        text = " ".join(words[1:]) + "\n" + _literal_text(command.invocation.stdin)
        return [first or second for first, second in _SQLITE_WRITES.findall(text)]
    if name in _EDITORS:
        return _edited_files(words)
    if name == "xxd":
        return _plain_operands(words)[1:2]
    if name in _FORMATTERS or name == "sd":
        return _formatted_files(name, words)
    if name in _LAST_OPERAND:
        target = [words[i + 1] for i, w in enumerate(words[:-1]) if w in _TARGET_FLAGS]
        return target or (_plain_operands(words)[-1:] if len(_plain_operands(words)) > 1 else [])
    if name in _IN_PLACE and any(_IN_PLACE_FLAG.match(word) for word in words[1:]):
        return _in_place_files(words)
    if name in ("awk", "gawk", "mawk"):
        return _plain_operands(words)[2:] if "inplace" in words else awk_writes(" ".join(words[1:]))
    if name in ("sed", "gsed"):
        return sed_acts(words[1:])[1]
    if name == "find" and "-delete" in words:
        return [f"{root.rstrip('/')}/**" for root in _find_roots(words)]
    if name == "dd":
        return [word[3:] for word in words if word.startswith("of=")]
    # The mode stands in the first word: `tar xf`, `tar -xzf`.
    if name in ("tar", "bsdtar") and any(re.match(r"^-?[a-zA-Z]*x|^--extract", w) for w in words[1:2]):
        return [words[i + 1] + "/**" for i, w in enumerate(words[:-1]) if w in ("-C", "--directory")]
    if name == "unzip":
        return [words[i + 1] + "/**" for i, w in enumerate(words[:-1]) if w == "-d"]
    if name not in _OUTPUT_FLAGS and any(word.startswith("--") and _OUTPUT.match(word) for word in words):
        named = _flag_values(words, _OUTPUT_NAMES)
        # Without a dot or a slash the value is mostly a format (`--output json`), not a file.
        return [value for value in named if "/" in value or "." in value or "-dir" in " ".join(words)]
    if name in _OUTPUT_FLAGS:
        return _flag_values(words, _OUTPUT_FLAGS[name])
    if INTERPRETER.match(name):
        return code_writes(code_of(command))
    return _copied_target(words) if name in _COPIERS else []


def _edited_files(words: list[str]) -> list[str]:
    """An editor writes the files that it is given, unless it is told what to do and writing is no part of it."""
    told = [words[at + 1] for at, word in enumerate(words[:-1]) if word in ("-c", "--cmd", "-S")]
    told += [word[1:] for word in words[1:] if word.startswith("+")]
    operands = [word for at, word in enumerate(words) if at and not word.startswith(("-", "+"))
                and words[at - 1] not in ("-c", "--cmd", "-S", "-u", "-i", "-T")]  # fmt: skip
    writes = [match[1] for text in told for part in text.split("|") if (match := _EDITOR_WRITES.match(part.strip()))]
    if told and not writes:
        return [] if any(re.match(r"^:?q", text) for text in told) else operands
    opened = [match[1] for text in told if (match := _EDITOR_OPENS.match(text.strip()))]
    return [*operands, *opened, *(file for file in writes if file)]


def _copied_target(words: list[str]) -> list[str]:
    """`docker cp c:/x FILE`, `aws s3 cp s3://b/x FILE`: the last operand, where it is no address."""
    verbs = [at for at, word in enumerate(words[1:4], 1) if word in ("cp", "copy", "copyto", "mv", "sync", "download")]
    operands = [word for word in words[verbs[0] + 1 :] if not word.startswith("-")] if verbs else []
    return [operands[-1]] if len(operands) > 1 and not re.match(r"^[\w.-]*:", operands[-1]) else []


def _plain_operands(words: list[str]) -> list[str]:
    """Words that are no options; what follows `--` never is one."""
    operands, plain = [], False
    for word in words[1:]:
        if word == "--" and not plain:
            plain = True
        elif plain or not word.startswith("-") or word == "-":
            operands.append(word)
    return operands


def _formatted_files(name: str, words: list[str]) -> list[str]:
    """Without `.`: what a formatter changes in a whole worktree shows afterwards."""
    if any(_CHECKS_ONLY.match(word) for word in words[1:]):
        return []
    if name != "sd" and not any(_FORMATTERS[name].search(word) for word in words[1:]):
        return []
    operands = [word for word in _plain_operands(words) if word not in _FORMATTER_VERBS]
    # Expressions stand before the files: two of sd, one of yq.
    operands = operands[2:] if name == "sd" else operands[1:] if name == "yq" else operands
    folders = [word.partition("=")[2] for word in words if word.startswith("-chdir=")]
    return [word for word in (*operands, *folders) if word.strip("./*")]


def _in_place_files(words: list[str]) -> list[str]:
    """The first word that is no option is the program, also behind `-e`. Without files: those that `xargs` hands on."""
    return _plain_operands(words)[1:] or ["{}"]


def _find_roots(words: list[str]) -> list[str]:
    """The folders that `find` searches: all words before its first test."""
    roots = list(itertools.takewhile(lambda word: not word.startswith(("-", "(", "!")), words[1:]))
    return roots or ["."]


def _expand_found(names: list[str], text: str) -> list[str]:
    """`find infra … -exec sed -i … {} +`: anything below the folders that were searched."""
    if not any("{}" in name for name in names):
        return names
    if not _FIND.search(text):
        roots_text = [
            root for listed in _LISTED.findall(text) for root in listed.split() if not root.startswith(("-", "'", '"'))
        ]
        return [name for name in names if "{}" not in name] + [
            f"{root.rstrip('/')}/**" for root in roots_text if root.strip("./")
        ]
    roots = [root for roots_text in _FIND.findall(text) for root in roots_text.split()] or ["."]
    return [name for name in names if "{}" not in name] + [f"{root.rstrip('/')}/**" for root in roots]


def _flag_values(words: list[str], flags: tuple[str, ...]) -> list[str]:
    letters = {flag[1] for flag in flags if len(flag) == 2}
    match = [
        words[i + 1]
        for i, word in enumerate(words[:-1])
        # `curl -sSLo FILE`: the last letter takes the next word.
        if word in flags or (re.fullmatch(r"-[a-zA-Z]{2,6}", word) and word[-1] in letters)
    ]
    return match + [word.partition("=")[2] for word in words if "=" in word and word.partition("=")[0] in flags]


_FILE_ENDING = re.compile(r"(?<=\w)\.[A-Za-z]\w{0,4}$")


def _git_writes(words: list[str], stdin: Pieces | None) -> list[str]:
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in ("-C", "-c", "--git-dir", "--work-tree") else 1
    verb, rest = words[at] if at < len(words) else "", words[at:]
    if verb == "checkout-index":
        return _plain_operands(rest)
    if verb == "config":
        # Only what sets something: a key and a value beside the file.
        file = _flag_values(rest, ("-f", "--file"))
        operands = [word for word in _plain_operands(rest)[1:] if word not in (*file, "set", "get", "list")]
        return file if len(operands) > 1 else []
    if verb == "bundle":
        return _plain_operands(rest)[1:2] if "create" in rest else []
    if verb in ("archive", "format-patch", "diff", "log", "show", "diff-tree"):
        return _flag_values(
            rest, ("-o", "--output", "--output-directory") if verb in ("archive", "format-patch") else ("--output",)
        )
    if verb in ("apply", "am"):
        return (
            patched_files(_literal_text(stdin))
            if not any(w in ("--check", "--stat", "--numstat") for w in rest)
            else []
        )
    if verb not in _GIT_WRITES:
        return []
    if verb == "checkout":
        # Without `--` an operand may be a branch, unless its name ends as files do.
        return rest[rest.index("--") + 1 :] if "--" in rest else [w for w in rest[1:] if _FILE_ENDING.search(w)]
    # `--staged` alone changes the index and no file.
    if verb == "restore" and "--staged" in rest and "--worktree" not in rest:
        return []
    return _plain_operands(rest)


def _literal_text(pieces: Pieces | None) -> str:
    return "".join(piece.text for piece in pieces or () if piece.invocation < 0 and not piece.filters)


def code_of(command: ShellCommand) -> str:
    """The text that an interpreter is given to run: behind `-c` or `-e`, or on its input."""
    words = command.words
    code_texts = [words[i + 1] for i, word in enumerate(words[:-1]) if word in CODE_FLAGS]
    reads_input = len(words) == 1 or words[1] == "-" or words[0].rpartition("/")[2] in ("ed", "ex", "sqlite3", "sqlite")
    if not code_texts and reads_input:
        code_texts = [_literal_text(command.invocation.stdin)]
    return "\n".join(code_texts)
