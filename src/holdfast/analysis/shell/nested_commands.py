"""Commands that stand in the arguments of another program: what launchers, remote shells, options and PowerShell start.

Only commands are returned, as shell text; whether a rule is about them is asked elsewhere, so that too many do little harm.
"""

import base64
import binascii
import re
import shlex
from collections.abc import Iterable

from holdfast.analysis.shell.flow import Pieces
from holdfast.analysis.shell.program_code import INTERPRETER
from holdfast.analysis.shell.recipes import RUNNERS
from holdfast.analysis.shell.syntax import UNKNOWN
from holdfast.core.lazy import lazy_pattern

POWERSHELLS = frozenset(("pwsh", "powershell"))
LAUNCHERS = frozenset(
    "script su runuser watch entr strace ltrace gdb unshare nsenter chroot parallel busybox tmux screen ssh at batch crontab "
    "systemd-run xterm expect nix-shell nix direnv bwrap firejail proot fakeroot catchsegv valgrind perf rtk setarch linux64 "
    "linux32 ld-linux-x86-64.so.2 toybox chpst s6-setuidgid daemonize start-stop-daemon dtach abduco fish tcsh csh xonsh elvish nu rlwrap just "
    "gnome-terminal konsole kitty alacritty wezterm foot zellij open osascript "
    "hyperfine concurrently pssh parallel-ssh pdsh clush mosh ts tsp task-spooler pueue flatpak-spawn xdotool ydotool wtype dotool "
    "nodemon watchexec chokidar onchange lxc incus vagrant multipass heroku fly flyctl railway ansible salt salt-call fab foreman "
    "honcho overmind sem sg newgrp pkexec runas schroot systemd-nspawn machinectl minikube k3s microk8s gcloud az".split()
)
"""Programs that start what they are told, in one word or in several."""
_LOOKS = frozenset(
    "echo printf grep rg ag ack egrep fgrep cat bat less more man help head tail ls which type whatis apropos tldr cheat info wc diff "
    "jq yq cut sort uniq tr find fd locate stat file touch mkdir rmdir rm cp mv ln install chmod chown tee test [ true false "
    "holdfast git hub jj sl gh glab logger wall mail say figlet cowsay notify-send curl wget http apt apt-get brew dnf yum apk pacman "
    "pip pip3 pipx gem cargo export alias unset read printenv env id date sleep kill pkill pgrep ps".split()
)
"""Programs whose words are names, files or text, never a command."""
_GUARDED = frozenset(
    "git make gmake kubectl oc helm terraform tofu pulumi npm pnpm yarn bun npx just task docker podman sh bash zsh env sudo holdfast gh "
    "cargo twine poetry uv fly flyctl vercel netlify firebase gcloud aws az serverless cdk ansible-playbook psql rsync scp ssh".split()
)
"""Programs that rules are about: where one is the first word behind a program that is not known, that one starts it."""
_TELLS_ONLY = frozenset(("echo", "printf", "gh", "glab", "git"))
# Verbs behind which a command follows: `lxc exec NAME git …`, `heroku run '…'`, `fly ssh console -C '…'`.
_RUN_VERBS = frozenset(("exec", "run", "ssh", "shell", "console", "spawn", "launch", "cmd.run"))
# Short options whose value is a command where it has several words: `vagrant ssh -c 'git …'`, `tar -I '…'`, `rsync -e '…'`.
_SHORT_FLAGS = frozenset(("-c", "-C", "-a", "-e", "-x", "-I", "-P", "-O", "-TT"))
_RUNS_VALUE = re.compile(r"exec|eval|command|cmd|filter|program|pager|editor|action|rsh|shell|hook|run|call|init")
_DECODERS = {"base64": ("-d", "-D", "--decode"), "base32": ("-d", "--decode"), "xxd": ("-r",), "openssl": ("-d",)}
MOST_LAUNCHED = 12


def carried_commands(name: str, words: list[str], stdin: Pieces | None) -> list[str]:
    """`name`: of the program, without its folder."""
    if name in POWERSHELLS:
        return powershell_commands(_powershell_text(words))
    if name == "cmd":
        text = " ".join(words[1:])
        return [_with_slashes(re.sub(r"(?i)^(?:/\w(?::\S+)?\s+)*", "", text).strip())]
    if name == "cmake" and words[1:3] and words[1] == "-E":
        return _cmake_commands(words[2:])
    if name in LAUNCHERS:
        return [*launched_commands(words[1:], stdin), *_behind_known_verbs(name, words)]
    if name in _TELLS_ONLY:
        return _of_github(words) if name == "gh" else []
    return [*_option_commands(name, words), *_behind_dashes(name, words)]


def launched_commands(arguments: list[str], stdin: Pieces | None = None) -> list[str]:
    """Programs that start what they are told: every word that could begin a command does."""
    # gdb and its like: `-ex 'shell make …'`.
    commands = [re.sub(r"^(?:shell|!|pipe)\s+", "", word) for word in arguments if " " in word or "\n" in word]
    commands += [
        join_words(arguments[at:]) for at in range(len(arguments)) if not arguments[at].startswith("-")
    ]  # fmt: skip
    text = "".join(piece.text for piece in stdin or () if piece.invocation < 0)
    return [*commands[:MOST_LAUNCHED], *([text] if text.strip() and UNKNOWN not in text else ())]


def decoded_input(name: str, words: list[str], stdin: Pieces | None) -> list[str]:
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


def join_words(words: Iterable[str]) -> str:
    return " ".join(quote_word(word) for word in words)


def quote_word(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _option_commands(name: str, words: list[str]) -> list[str]:
    """`--filter='…'`, `--checkpoint-action=exec=…`: options whose name says that their value is run."""
    commands = []
    short = name not in _LOOKS and not INTERPRETER.match(name) and name not in ("sed", "gsed")
    for at, word in enumerate(words[1:], 1):
        flag, equals, value = word.partition("=")
        if flag.startswith("--") and _RUNS_VALUE.search(flag):
            value = value if equals else "".join(words[at + 1 : at + 2])
            commands += [value.removeprefix("exec=")] if " " in value else []
        elif word.startswith((".shell ", ".system ")):
            commands.append(word.partition(" ")[2])
        elif short and word in _SHORT_FLAGS:
            commands += [value for value in words[at + 1 : at + 2] if " " in value]
        elif name in ("gcc", "cc", "g++", "clang") and word == "-wrapper":
            commands += [value.replace(",", " ") for value in words[at + 1 : at + 2]]
        elif name == "ssh" and "ommand=" in word:
            commands.append(word.partition("=")[2])
    return commands


def _behind_dashes(name: str, words: list[str]) -> list[str]:
    """What stands behind `--`, behind a verb that runs, or as the first words of a program that is not known otherwise."""
    if name in _LOOKS or name in RUNNERS or INTERPRETER.match(name):
        return []
    begins = [at + 1 for at, word in enumerate(words) if word == "--"][:1]
    begins += [at + 1 for at, word in enumerate(words[1:4], 1) if word in _RUN_VERBS][:1]
    if not begins:
        at = next((at for at, word in enumerate(words) if at and not word.startswith("-")), 0)
        return [join_words(words[at:])] if at and words[at] in _GUARDED and len(words) > at + 1 else []
    return [command for at in begins for command in launched_commands(words[at:])]


def _behind_known_verbs(name: str, words: list[str]) -> list[str]:
    """`k3s kubectl apply`, `minikube kubectl -- apply`: the program's own words without the separator."""
    if name in ("k3s", "minikube", "microk8s"):
        return [join_words(word for word in words[1:] if word != "--")]
    return []


def _of_github(words: list[str]) -> list[str]:
    """`gh codespace ssh -- CMD` and `gh alias set x '!CMD'`; what else stands there is text."""
    commands = [word[1:] for word in words if word.startswith("!")]
    if "ssh" in words and "--" in words:
        commands += launched_commands(words[words.index("--") + 1 :])
    return commands


def _cmake_commands(words: list[str]) -> list[str]:
    """`cmake -E env A=1 CMD`, and its own copy, move and remove as those of the shell."""
    verb, rest = words[0], words[1:]
    if verb in ("env", "chdir", "time"):
        return launched_commands(rest)
    like = {"copy": "cp", "copy_if_different": "cp", "copy_directory": "cp -r", "rename": "mv", "remove": "rm", "rm": "rm",
            "remove_directory": "rm -r", "touch": "touch", "create_symlink": "ln -s", "create_hardlink": "ln"}.get(verb)  # fmt: skip
    return [f"{like} {join_words(rest)}"] if like and rest else []


# ── PowerShell ───────────────────────────────────────────────────────────────────────────────────────────────────────

# Groups: 'text', "text", a separator of statements, a redirection, any other word.
_TOKEN = lazy_pattern(
    r"""'((?:[^']|'')*)'|"((?:[^"`]|`.)*)"|(\|\||&&|[;|{}()\n])|(\d?>>?)|((?:[^\s'";|{}()>&]|&(?!&))+)""", re.S
)
_STARTS = frozenset(("start-process", "saps", "start"))
_EVALUATES = frozenset(("invoke-expression", "iex"))
# How many names of files stand behind them that are written; 0: all.
_WRITERS = {
    **dict.fromkeys(("set-content", "sc", "add-content", "ac", "out-file", "clear-content", "clc", "tee-object", "new-item", "ni"), 1),
    **dict.fromkeys(("remove-item", "ri", "del", "erase", "rd", "move-item", "mi", "move", "rename-item", "ren", "rni"), 0),
    **dict.fromkeys(("copy-item", "cpi", "copy"), -1),
}  # fmt: skip
_PATH_FLAGS = frozenset(("-path", "-filepath", "-literalpath", "-destination"))
_TEXT_FLAG = lazy_pattern(r"(?i)^[-/](?:c|command|commandwithargs)$")
_ENCODED_FLAG = lazy_pattern(r"(?i)^[-/](?:e|ec|en|enc\w*)$")
_VALUE_FLAG = lazy_pattern(r"(?i)^[-/](?:executionpolicy|ep|ex|workingdirectory|wd|configurationname|version|file|f)$")


def powershell_commands(text: str) -> list[str]:
    """The statements of a PowerShell text as commands of the shell."""
    commands: list[str] = []
    statement: list[str] = []
    target = False
    for match in _TOKEN.finditer(text[:20_000]):
        single, double, separator, redirect, bare = match.groups()
        if separator:
            commands += _powershell_statement(statement)
            statement, target = [], False
            continue
        if redirect:
            target = True
            continue
        word = single.replace("''", "'") if single is not None else double if double is not None else bare
        if target:
            commands.append(f": > {quote_word(_with_slashes(word))}")
            target = False
        elif not (bare in ("&", ".") and not statement):
            statement.append(word)
    return [*commands, *_powershell_statement(statement)]


def _powershell_statement(words: list[str]) -> list[str]:
    # `$out = git …`: what is assigned is run.
    if len(words) > 2 and words[0].startswith("$") and words[1] == "=":
        words = words[2:]
    if not words:
        return []
    name, rest = words[0].lower(), words[1:]
    if name in _EVALUATES:
        return powershell_commands(" ".join(word for word in rest if not word.lower().startswith("-com")))
    if name in _STARTS:
        named = [
            word
            for word in rest
            if not re.match(r"(?i)^-(?:filepath|argumentlist|args|wait|nonewwindow|passthru)$", word)
        ]
        return [join_words(part for word in named for part in word.split(",") if part)]
    if name in _WRITERS:
        return _powershell_writes(_WRITERS[name], rest)
    return [join_words([_with_slashes(words[0]), *rest])]


def _powershell_writes(count: int, rest: list[str]) -> list[str]:
    named = [rest[at + 1] for at, word in enumerate(rest[:-1]) if word.lower() in _PATH_FLAGS]
    plain = [
        word for at, word in enumerate(rest) if not word.startswith("-") and not (at and rest[at - 1].startswith("-"))
    ]
    files = plain[-1:] if count < 0 else plain[: count or None]
    files = [*named[-1:], *files] if count < 0 else [*named, *files] if count == 0 else named[:1] or files
    return [f": > {quote_word(_with_slashes(file))}" for file in files]


def _powershell_text(words: list[str]) -> str:
    at = 1
    while at < len(words):
        if _TEXT_FLAG.match(words[at]):
            return " ".join(words[at + 1 :])
        if _ENCODED_FLAG.match(words[at]):
            try:
                return base64.b64decode("".join(words[at + 1 : at + 2])).decode("utf-16-le")
            except (ValueError, binascii.Error):
                return ""
        if not words[at].startswith(("-", "/")):
            return " ".join(words[at:])
        at += 2 if _VALUE_FLAG.match(words[at]) else 1
    return ""


def _with_slashes(text: str) -> str:
    return text.replace("\\", "/")


def as_powershell(command: str) -> str:
    """The command of a tool that is PowerShell itself, as the shell would start it."""
    return f"pwsh -Command {shlex.quote(command)}"
