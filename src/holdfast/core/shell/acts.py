"""What a command is about to do, in a spelling that rules can be tried on: `FOO=1 /usr/bin/git -C x 'commit'` is `git commit`.

Every program that the command may start is one reading; words that are only arguments (of grep, of echo, of a commit
message) are none.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

from holdfast.core.shell.analysis import Analysis, Ran, ShellCommand, analyse_command
from holdfast.core.shell.flow import Pieces
from holdfast.core.shell.programs import SHELLS
from holdfast.core.shell.redirects import join
from holdfast.core.shell.syntax import UNKNOWN
from holdfast.core.shell.written_files import code_of, written_files

LONGEST_COMMAND = 20_000
MAX_READINGS = 300
MAX_DEPTH = 4
BLANK = "\u2423"
"""Stands for a blank inside of one word: `-m 'make deploy'` is one word and no command."""

_GIT_VALUES = frozenset(
    "-C -c --git-dir --work-tree --namespace --exec-path --config-env --super-prefix --attr-source".split()
)
_MAKE_VALUES = frozenset("-C -f -I -j -l -o -W --directory --file --makefile --include-dir --eval -E".split())
_MAKE_NOTHING = re.compile(r"^-[a-zA-Z]*[nq]|^--(?:dry-run|just-print|recon|question|version|help)$")
_MAKEFILES = frozenset(("", "Makefile", "makefile", "GNUmakefile"))
_DRY = re.compile(r"^--dry-run(?:=(?!none|false).*)?$|^--help$")
_DRY_PROGRAMS = frozenset(
    "git kubectl helm npm pnpm yarn cargo twine gh docker rsync ansible-playbook skaffold oc poetry uv flyctl serverless cdk".split()
)
_SHORT_DRY = {"push": "-n", "add": "-n", "clean": "-n", "rm": "-n", "mv": "-n", "fetch": "-n"}
_LAUNCHERS = frozenset(
    "script su runuser watch entr strace ltrace gdb unshare nsenter chroot parallel busybox tmux screen ssh at batch crontab "
    "systemd-run xterm expect nix-shell nix direnv bwrap firejail proot fakeroot catchsegv valgrind perf rtk setarch linux64 "
    "linux32 ld-linux-x86-64.so.2 toybox chpst s6-setuidgid daemonize start-stop-daemon dtach abduco fish tcsh csh pwsh powershell xonsh elvish nu rlwrap just "
    "gnome-terminal konsole kitty alacritty wezterm foot zellij open osascript".split()
)
_INTERPRETER = re.compile(
    r"^(?:python|pypy|perl|ruby|node|nodejs|deno|bun|php|lua|Rscript|tclsh|osascript|awk|gawk|mawk|m4|vim?|nvim|ex|ed)[\d.]*$"
)
_STARTS_PROGRAMS = re.compile(
    r"system|popen|Popen|subprocess|exec|spawn|child_process|qx|`|pty|runpy|importlib|__import__|eval|compile\(|fork|shell|sh\b"
)
_LITERAL = re.compile(r"""([rbfu]?)(\"(?:[^"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`[^`]*`)""", re.S)
_LOOKED_UP = re.compile(
    r"""\$\((?:which|command -v|type -P|type -p)\s+([\w.-]+)\s*\)|`(?:which|command -v)\s+([\w.-]+)\s*`"""
)
"""`$(which git)` is git."""
_COPROC = re.compile(r"(?:^|(?<=[;&|\n]))\s*coproc\s+(?=[\w./])")
_GIT_RUNS = re.compile(r"^(?:-x|--exec|--extcmd|--upload-pack|--tool-help)$|^--(?:exec|extcmd)=")
_JOINED = re.compile(r"^\s*[+.]\s*$|^\s*$")
_LISTED = re.compile(r"^\s*,\s*\[?\s*$")
_DECODERS = {"base64": ("-d", "-D", "--decode"), "base32": ("-d", "--decode"), "xxd": ("-r",), "openssl": ("-d",)}


class CommandActs(msgspec.Struct, frozen=True):
    """What one shell command may do."""

    readings: tuple[str, ...] = ()
    """Each program it may start, as its name and words; without wrappers and options in front of its verb."""
    writes: tuple[str, ...] = ()
    """Files it writes, as far as the command shows; joined with the folder it is in."""
    hidden: tuple[str, ...] = ()
    """What it runs that cannot be read: a text from elsewhere, a name that is not known."""
    problem: str = ""
    """Why it could not be followed; then `readings` is the text itself."""


def read_acts(command: str, cwd: str = ".", meanings: Mapping[str, str] | None = None) -> CommandActs:
    """`meanings`: what names stand for that only the disk tells (`git ci`, `npm run ship`, `./deploy.sh`), as shell text."""
    return _read_acts(command[:LONGEST_COMMAND], cwd, tuple(sorted((meanings or {}).items())))


@lru_cache(2_000)
def _read_acts(command: str, cwd: str, meanings: tuple[tuple[str, str], ...]) -> CommandActs:
    reader = _Reader(dict(meanings))
    reader.read(command, cwd, 0)
    return CommandActs(
        tuple(dict.fromkeys(reader.readings))[:MAX_READINGS], tuple(dict.fromkeys(reader.writes)),
        tuple(dict.fromkeys(reader.hidden)), reader.problem,
    )  # fmt: skip


def names_to_resolve(command: str, cwd: str = ".") -> list[str]:
    """The keys of `meanings` that would say more about this command."""
    reader = _Reader({})
    reader.read(command[:LONGEST_COMMAND], cwd, 0)
    return list(dict.fromkeys(reader.unresolved))


class _Reader:
    def __init__(self, meanings: dict[str, str]) -> None:
        self.readings: list[str] = []
        self.writes: list[str] = []
        self.hidden: list[str] = []
        self.unresolved: list[str] = []
        self.problem = ""
        self._meanings = dict(meanings)
        self._links: dict[str, str] = {}

    def read(self, text: str, cwd: str, depth: int) -> None:
        text = _COPROC.sub(" ", _LOOKED_UP.sub(lambda match: match[1] or match[2], text))
        if depth > MAX_DEPTH or len(self.readings) > MAX_READINGS:
            self.hidden.append("too many commands inside one another")
            return
        analysis = analyse_command(text, cwd=cwd)
        if analysis.problem:
            self.problem = self.problem or analysis.problem
            self.readings.append(" ".join(text.split()))
            return
        self.writes += written_files(analysis, text)
        for command in analysis.commands:
            if command.ran is not Ran.NO and not command.invocation.shadowed:
                self._read_command(command, analysis, depth)

    def _read_command(self, command: ShellCommand, analysis: Analysis, depth: int) -> None:
        words, cwd = command.words, command.invocation.cwd
        name = self._links.get(join(cwd, words[0]), words[0]).rpartition("/")[2]
        if name in ("{", "!", "then", "do", "spawn"):
            words = words[1:] or words
            name = words[0].rpartition("/")[2]
        if UNKNOWN in words[0]:
            self.hidden.append("a program whose name is not known")
        inner: list[str] = []
        if name == "ln":
            self._note_link(words, cwd)
        elif name == "git":
            inner += self._git(words)
        elif name in ("make", "gmake"):
            self._make(words)
        elif name in SHELLS:
            inner += self._shell(command)
        else:
            self._add(name, words[1:])
        if name in _LAUNCHERS:
            inner += _launched(words[1:], command.invocation.stdin)
        if _INTERPRETER.match(name):
            inner += self._code(name, code_of(command) or _awk_text(name, words))
        inner += _decoded(name, words, command.invocation.stdin)
        inner += self._meaning(name, words, cwd)
        for text in inner:
            self.read(text, cwd, depth + 1)

    # ── readings ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _add(self, name: str, arguments: list[str]) -> None:
        """The whole, and without the options (and their values) that stand before the first operand."""
        if name in _DRY_PROGRAMS and any(_DRY.match(word) for word in arguments):
            return
        self.readings.append(_joined(name, arguments))
        at = 0
        while at < len(arguments) and arguments[at].startswith("-"):
            at += 1
            self.readings.append(_joined(name, arguments[at:]))
            if at < len(arguments) and not arguments[at].startswith("-") and "=" not in arguments[at - 1]:
                self.readings.append(_joined(name, arguments[at + 1 :]))
                if at + 1 < len(arguments) and arguments[at + 1].startswith("-"):
                    at += 1

    def _git(self, words: list[str]) -> list[str]:
        at, aliases = 1, {}
        while at < len(words) and words[at].startswith("-"):
            if words[at] == "-c" and at + 1 < len(words) and words[at + 1].lower().startswith("alias."):
                key, _, value = words[at + 1][6:].partition("=")
                aliases[key] = value
            at += 2 if words[at] in _GIT_VALUES else 1
        if at >= len(words):
            return []
        verb, rest = words[at], words[at + 1 :]
        if verb == "config" and (set_ := _alias_set(rest)):
            self._meanings[f"git {set_[0]}"] = _alias_command(set_[1], [])
        if verb in aliases:
            return [_alias_command(aliases[verb], rest)]
        if any(_DRY.match(word) or word == _SHORT_DRY.get(verb) for word in rest) or rest == ["-h"]:
            return []
        self.readings.append(_joined("git", [verb, *rest]))
        return _run_by_git(verb, rest)

    def _make(self, words: list[str]) -> None:
        if any(_MAKE_NOTHING.match(word) for word in words[1:]):
            return
        targets, at, makefile = [], 1, ""
        while at < len(words):
            word = words[at]
            if word in ("-f", "--file", "--makefile"):
                makefile = words[at + 1] if at + 1 < len(words) else ""
            elif word.startswith(("-f", "--file=", "--makefile=")) and len(word) > 2:
                makefile = word.partition("=")[2] or word[2:]
            takes = word in _MAKE_VALUES
            if not word.startswith("-") and "=" not in word:
                targets.append(word)
            at += 2 if takes and not _is_bare_jobs(words, at) else 1
        self.readings += [_joined("make", words[1:]), *(_joined("make", [target]) for target in targets)]
        if makefile not in _MAKEFILES:
            self.hidden.append(f"targets of the makefile {makefile}")

    def _shell(self, command: ShellCommand) -> list[str]:
        """A shell whose text the parse could not follow."""
        words = command.words
        if any(word in ("--version", "--help") for word in words[1:]):
            return []
        script = next((word for word in words[1:] if not word.startswith(("-", "+"))), "")
        self._add(words[0].rpartition("/")[2], words[1:])
        text = self._meanings.get(f"file {join(command.invocation.cwd, script)}") if script else None
        if text is not None:
            return [text]
        if script:
            self.unresolved.append(f"file {join(command.invocation.cwd, script)}")
        self.hidden.append(
            f"the script {script}" if script and UNKNOWN not in script else "a shell that reads a text from elsewhere"
        )
        return []

    def _code(self, name: str, code: str) -> list[str]:
        """Commands in quotes inside of a program text."""
        if not code or not _STARTS_PROGRAMS.search(code):
            return []
        texts = _literals(code)
        found = [text for text in texts if " " in text.strip()]
        if not found or "decode" in code or "chr(" in code or "fromhex" in code:
            self.hidden.append(f"{name} code that starts programs")
        return found

    def _meaning(self, name: str, words: list[str], cwd: str) -> list[str]:
        if name in ("make", "gmake") and any(_MAKE_NOTHING.match(word) for word in words[1:]):
            return []
        keys = _meaning_keys(name, words, cwd)
        known = [self._meanings.pop(key) for key in keys if key in self._meanings]
        self.unresolved += [key for key in keys if key not in self._meanings]
        return known

    def _note_link(self, words: list[str], cwd: str) -> None:
        operands = [word for word in words[1:] if not word.startswith("-")]
        if len(operands) == 2:
            self._links[join(cwd, operands[1])] = operands[0]


def _run_by_git(verb: str, rest: list[str]) -> list[str]:
    """Commands that git itself starts: `rebase -x`, `bisect run`, `submodule foreach`."""
    if verb in ("bisect", "submodule") and {"run", "foreach"} & set(rest[:2]):
        return _launched([word for word in rest if word not in ("run", "foreach")], None)
    found = [rest[at + 1] for at, word in enumerate(rest[:-1]) if _GIT_RUNS.match(word)]
    return found + [word.partition("=")[2] for word in rest if "=" in word and _GIT_RUNS.match(word)]


def _is_bare_jobs(words: list[str], at: int) -> bool:
    """`make -j deploy`: the number may be left out."""
    return words[at] in ("-j", "-l") and not words[at + 1 : at + 2][0].isdecimal() if at + 1 < len(words) else True


def _joined(name: str, arguments: Iterable[str]) -> str:
    return " ".join([name, *("".join(BLANK if c.isspace() else c for c in word) for word in arguments)])


def _alias_set(rest: list[str]) -> tuple[str, str] | None:
    operands = [word for word in rest if not word.startswith("--") and word != "set"]
    named = len(operands) >= 2 and operands[0].lower().startswith("alias.")
    return (operands[0][6:], operands[1]) if named else None


def _alias_command(value: str, rest: list[str]) -> str:
    """What git makes of an alias: a shell text behind `!`, else a verb with arguments."""
    tail = " ".join(_quoted(word) for word in rest)
    return f"{value[1:]} {tail}" if value.startswith("!") else f"git {value} {tail}"


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _launched(arguments: list[str], stdin: Pieces | None) -> list[str]:
    """Programs that start what they are told: every word that could begin a command does."""
    found = [word for word in arguments if " " in word or "\n" in word]
    found += [
        " ".join(_quoted(word) for word in arguments[at:])
        for at in range(len(arguments))
        if not arguments[at].startswith("-")
    ]
    text = "".join(piece.text for piece in stdin or () if piece.invocation < 0)
    return [*found[:12], *([text] if text.strip() and UNKNOWN not in text else ())]


def _literals(code: str) -> list[str]:
    """Texts in quotes, joined where the code joins them, and as one command where they are a list of words."""
    found: list[str] = []
    row: list[str] = []
    end = None
    for match in _LITERAL.finditer(code):
        text = match[2][1:-1].replace('\\"', '"').replace("\\'", "'")
        between = code[end : match.start()] if end is not None else None
        if between is not None and found and _JOINED.match(between):
            found[-1] += text
            row[-1:] = [found[-1]]
        else:
            if between is not None and _LISTED.match(between):
                row.append(text)
            else:
                found += _as_command(row)
                row = [text]
            found.append(text)
        end = match.end()
    return [*found, *_as_command(row)]


def _as_command(row: list[str]) -> list[str]:
    return [" ".join(_quoted(word) for word in row)] if len(row) > 1 else []


def _awk_text(name: str, words: list[str]) -> str:
    if name in ("vi", "vim", "nvim", "ex", "ed", "m4"):
        return "system '" + " ".join(words[1:]).replace(":!", "' '") + "'"
    return " ".join(words[1:]) if name.endswith("awk") else ""


def _decoded(name: str, words: list[str], stdin: Pieces | None) -> list[str]:
    """`echo bWFr… | base64 -d` shows what it hides."""
    flags = _DECODERS.get(name)
    if not flags or not any(word in flags for word in words[1:]):
        return []
    text = "".join(piece.text for piece in stdin or () if piece.invocation < 0).strip()
    try:
        raw = (
            bytes.fromhex(text)
            if name == "xxd"
            else base64.b32decode(text)
            if name == "base32"
            else base64.b64decode(text)
        )
        return [raw.decode()] if text else []
    except (ValueError, binascii.Error):
        return []


def _meaning_keys(name: str, words: list[str], cwd: str) -> list[str]:
    """Under which names the disk may know more about this program."""
    if name == "git":
        at = 1
        while at < len(words) and words[at].startswith("-"):
            at += 2 if words[at] in _GIT_VALUES else 1
        verb = words[at] if at < len(words) else ""
        return [f"git {verb}"] if verb and verb not in GIT_VERBS and UNKNOWN not in verb else []
    if name in ("npm", "pnpm", "yarn", "bun"):
        operands = [word for word in words[1:] if not word.startswith("-")]
        script = (
            operands[1] if operands[:1] in (["run"], ["run-script"]) and len(operands) > 1 else "".join(operands[:1])
        )
        return [f"script {cwd}\0{script}"] if script else []
    if name in ("make", "gmake"):
        return [f"make {cwd}\0{word}" for word in words[1:] if not word.startswith("-") and "=" not in word]
    if "/" in words[0] and UNKNOWN not in words[0]:
        return [f"file {join(cwd, words[0])}"]
    return []


GIT_VERBS = frozenset(
    "add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore checkout checkout-index cherry cherry-pick "
    "clean clone column commit commit-graph commit-tree config count-objects credential describe diff diff-files diff-index diff-tree "
    "difftool fast-export fast-import fetch filter-branch fmt-merge-msg for-each-ref format-patch fsck gc grep gui hash-object help "
    "init instaweb interpret-trailers log ls-files ls-remote ls-tree maintenance merge merge-base merge-file merge-index merge-tree mergetool mv "
    "name-rev notes pack-objects pack-refs patch-id prune pull push range-diff read-tree rebase reflog remote repack replace request-pull "
    "rerere reset restore rev-list rev-parse revert rm send-email shortlog show show-branch show-ref sparse-checkout stash status "
    "stripspace submodule svn switch symbolic-ref tag unpack-objects update-index update-ref update-server-info var verify-commit "
    "verify-tag version whatchanged worktree write-tree".split()
)
