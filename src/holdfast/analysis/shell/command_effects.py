"""What a command is about to do, in a spelling that rules can be tried on: `FOO=1 /usr/bin/git -C x 'commit'` is `git commit`.

Every program that the command may start is one reading; words that are only arguments (of grep, of echo, of a commit
message) are none.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise

import msgspec

from holdfast.analysis.shell.analysis import Analysis, Ran, ShellCommand, analyse_command
from holdfast.analysis.shell.flow import NULL, STDERR, STDOUT, TERMINAL, Pieces
from holdfast.analysis.shell.git_acts import hook_files, made_setting, settings_of_variables, started_programs
from holdfast.analysis.shell.nested_commands import (
    LAUNCHERS,
    POWERSHELLS,
    carried_commands,
    decoded_input,
    join_words,
    launched_commands,
    powershell_commands,
    quote_word,
)
from holdfast.analysis.shell.program_code import CODE_FLAGS, INTERPRETER, read_commands, sed_acts, shorten_command
from holdfast.analysis.shell.programs import SHELLS
from holdfast.analysis.shell.recipes import EDITOR_TASK, RUNNERS, find_meaning, is_source_of, make_recipe, parse_make
from holdfast.analysis.shell.redirects import join_path
from holdfast.analysis.shell.syntax import UNKNOWN
from holdfast.analysis.shell.written_files import code_of, written_files

MAX_READINGS, MAX_DEPTH = 300, 4
BLANK = "\u2423"
"""Stands for a blank inside of one word: `-m 'make deploy'` is one word and no command."""

_NO_FILES = frozenset((TERMINAL, STDOUT, STDERR, NULL))
_GIT_VALUES = frozenset(
    "-C -c --git-dir --work-tree --namespace --exec-path --config-env --super-prefix --attr-source".split()
)
_MAKEFILES = frozenset(("", "Makefile", "makefile", "GNUmakefile"))
_DRY = re.compile(r"^--dry-run(?:=(?!none|false).*)?$|^--help$")
_TAKES_VALUE = re.compile(r"^--(?:tag|registry|message|title|body|notes|otp|access|workspace|namespace|context|file)$")
_DRY_PROGRAMS = frozenset(
    "git kubectl helm npm pnpm yarn cargo twine gh docker rsync ansible-playbook skaffold oc poetry uv flyctl serverless cdk".split()
)
_SHORT_DRY = {"push": "-n", "add": "-n", "clean": "-n", "rm": "-n", "mv": "-n", "fetch": "-n"}
_EDITORS = frozenset(("vi", "vim", "nvim", "ex", "ed", "m4"))
"""They run what stands behind `!`: `vim -c ':!make deploy'`."""
_TAKES_TEXT = re.compile(r"^-[a-zA-Z]*[mFCct]$|^--(?:message|file|author|date|trailer|template|reuse-message)$")
_RECIPE_NOTHING = frozenset(
    "--list -l --list-all --summary --show --dump --evaluate --dry-run -n --dry --version --help -h -T --tasks --choose".split()
)
_RUNNER_VALUES = frozenset(
    "--set -f --justfile -d --working-directory -t --taskfile --dir -C -p --prefix -w --filter -F --workspace --cwd --scope".split()
)
# Programs whose words are tasks, and the verbs of others behind which one stands.
_TASK_VERBS = frozenset(
    "run run-script turbo nx lerna doit mage gradle gradlew earthly invoke inv fab rake nox tox just task "
    f"grunt gulp {EDITOR_TASK}".split()
)
# What tasks of these names do is known by custom.
_CUSTOMARY = re.compile(
    r"(?i)test|spec|lint|check|build|fmt|format|type|dev|start|watch|compile|clean|install|serve|doc|ci\b|bench|cover|help|list|e2e|unit"
)
_GIT_RUNS = re.compile(
    r"^(?:-x|-u|--exec|--extcmd|--upload-pack|--receive-pack)$|^--(?:exec|extcmd|upload-pack|receive-pack)="
)


class CommandActs(msgspec.Struct, frozen=True):
    """What one shell command may do."""

    readings: tuple[str, ...] = ()
    """Each program it may start, as its name and words; without wrappers and options in front of its verb."""
    writes: tuple[str, ...] = ()
    """Files it writes, as far as the command shows; joined with the folder it is in."""
    hidden: tuple[str, ...] = ()
    """What it runs that cannot be read: a text from elsewhere, a name that is not known."""
    rewritten: tuple[str, ...] = ()
    """Scripts and recipes that it both writes and runs, by the names of `meanings`: what lay there before says nothing."""
    problem: str = ""
    """Why it could not be followed; then `readings` is the text itself."""


def read_acts(command: str, cwd: str = ".", meanings: Mapping[str, str] | None = None) -> CommandActs:
    """`meanings`: what names stand for that only the disk tells (`git ci`, `npm run ship`, `./deploy.sh`), as shell text."""
    text, whole = shorten_command(command)
    acts = _read_acts(text, cwd, tuple(sorted((meanings or {}).items())))[0]
    return acts if whole else msgspec.structs.replace(acts, hidden=(*acts.hidden, "the end of a very long command"))


@lru_cache(2_000)
def _read_acts(command: str, cwd: str, meanings: tuple[tuple[str, str], ...]) -> tuple[CommandActs, tuple[str, ...]]:
    """With the names that the disk may know more about."""
    reader = _Reader(dict(meanings))
    reader.read(command, cwd, 0)
    acts = CommandActs(
        tuple(dict.fromkeys(reader.readings))[:MAX_READINGS], tuple(dict.fromkeys(reader.writes)),
        tuple(dict.fromkeys(reader.hidden)), tuple(dict.fromkeys(reader.rewritten)), reader.problem,
    )  # fmt: skip
    return acts, tuple(dict.fromkeys(reader.unresolved))


def names_to_resolve(command: str, cwd: str = ".") -> list[str]:
    """The keys of `meanings` that would say more about this command."""
    return list(_read_acts(shorten_command(command)[0], cwd, ())[1])


class _Reader:
    def __init__(self, meanings: dict[str, str]) -> None:
        self.readings: list[str] = []
        self.writes: list[str] = []
        self.hidden: list[str] = []
        self.unresolved: list[str] = []
        self.rewritten: list[str] = []
        self.problem = ""
        self._meanings = dict(meanings)
        self._texts: dict[str, str] = {}
        self._used: set[str] = set()
        self._links: dict[str, str] = {}
        self._configured: dict[str, str] = {}

    def read(self, text: str, cwd: str, depth: int) -> None:
        if depth > MAX_DEPTH or len(self.readings) > MAX_READINGS:
            self.hidden.append("too many commands inside one another")
            return
        analysis = analyse_command(text, cwd=cwd)
        if analysis.problem and depth:
            self.hidden.append("a script that could not be followed")
        if analysis.problem:
            self.problem = self.problem or ("" if depth else analysis.problem)
            self.readings += (
                [" ".join(text.split())] if not depth else [" ".join(one.split()) for one in text.splitlines()]
            )
            return
        self.writes += [
            name for file in written_files(analysis, text) for name in (file, self._behind_link(file)) if name
        ]
        self._texts |= _written_texts(analysis)
        for command in analysis.commands:
            if command.ran is not Ran.NO and not command.invocation.shadowed:
                self._read_command(command, analysis, depth)
        self.writes += [name for file in self.writes if (name := self._behind_link(file))]
        for file in analysis.sourced:
            for later in self._known_meanings([f"file {file}"]):
                self.read(later, cwd, depth + 1)
        for later in analysis.run_later:
            self.read(later, cwd, depth + 1)

    def _read_command(self, command: ShellCommand, analysis: Analysis, depth: int) -> None:
        words, cwd = command.words, command.invocation.cwd
        name = program_name(self._links.get(join_path(cwd, words[0]), words[0]))
        if name == "hub":
            name, words = "git", ["git", *words[1:]]
        if name.startswith("git-") and name[4:] in GIT_VERBS:
            name, words = "git", ["git", name[4:], *words[1:]]
        if name in ("{", "!", "then", "do", "spawn"):
            words = words[1:] or words
            name = program_name(words[0])
        if UNKNOWN in words[0] or re.search(r"[*?\[]", name.rstrip("[")):
            self.hidden.append("a program whose name is not known")
        inner: list[str] = []
        if name in ("ln", "cp", "install"):
            self._note_link(words, cwd)
            self._add(name, words[1:])
        elif name in ("rm", "unlink"):
            self._links = {
                link: to for link, to in self._links.items() if link not in {join_path(cwd, w) for w in words[1:]}
            }
            self._add(name, words[1:])
        elif name == "git":
            inner += self._git(words, command.invocation.environment, cwd)
        elif name in ("make", "gmake"):
            inner += self._make(words, command.invocation.stdin)
            if UNKNOWN in "".join(words) or "MAKEFILES" in command.invocation.environment:
                self.hidden.append("make with a target or a makefile that is not known")
        elif name in SHELLS:
            inner += self._shell(command)
        else:
            self._add(name, words[1:])
        carried = carried_commands(name, words, command.invocation.stdin)
        if name in LAUNCHERS or name in POWERSHELLS:
            inner += carried
        else:
            self._read_if_command(carried, cwd, depth)
        if INTERPRETER.match(name):
            inner += self._code(name, code_of(command) or _awk_text(name, words))
        if name in _EDITORS:
            inner += [word.partition("!")[2] for word in words[1:] if "!" in word]
        if name in ("sed", "gsed"):
            inner += sed_acts(words[1:])[0]
        inner += decoded_input(name, words, command.invocation.stdin)
        inner += self._meaning(name, words, cwd)
        for wrapper in command.invocation.wrappers[-1:]:
            if wrapper == "windows shell":
                inner += powershell_commands(" ".join(words))
            if wrapper in ("pdm run", "hatch run", "rye run"):
                inner += self._known_meanings([f"recipe {wrapper.partition(' ')[0]}\0{cwd}\0{words[0]}"])
        for text in inner:
            self.read(text, cwd, depth + 1)

    def _read_if_command(self, texts: list[str], cwd: str, depth: int) -> None:
        """Arguments that may be commands or something else: that one cannot be read tells nothing."""
        known = len(self.hidden)
        for text in texts:
            self.read(text, cwd, depth + 1)
        del self.hidden[known:]

    def _add(self, name: str, arguments: list[str]) -> None:
        """The whole, and without the options (and their values) that stand before the first operand."""
        if name in _DRY_PROGRAMS and _is_dry_run(arguments):
            return
        self.readings.append(_join_command(name, arguments))
        at = 0
        while at < len(arguments) and arguments[at].startswith("-"):
            at += 1
            self.readings.append(_join_command(name, arguments[at:]))
            if at < len(arguments) and not arguments[at].startswith("-") and "=" not in arguments[at - 1]:
                self.readings.append(_join_command(name, arguments[at + 1 :]))
                if at + 1 < len(arguments) and arguments[at + 1].startswith("-"):
                    at += 1

    def _git(self, words: list[str], environment: Mapping[str, str], cwd: str) -> list[str]:
        at, configured = 1, settings_of_variables(environment)
        while at < len(words) and words[at].startswith("-"):
            if words[at] == "-c" and at + 1 < len(words):
                key, _, value = words[at + 1].partition("=")
                configured[key.lower()] = value
            elif words[at].startswith("--config-env="):
                key, _, variable = words[at][13:].rpartition("=")
                configured[key.lower()] = environment.get(variable, "")
            at += 2 if words[at] in _GIT_VALUES else 1
        if at >= len(words):
            return []
        verb, rest = words[at], words[at + 1 :]
        aliases = {key[6:]: value for key, value in configured.items() if key.startswith("alias.")}
        if verb == "config" and (made := made_setting(rest)):
            configured[made[0]] = self._configured[made[0]] = made[1]
            if made[0].startswith("alias."):
                self._meanings[f"git {made[0][6:]}"] = _alias_command(made[1], [])
        started = started_programs(configured, environment)
        if verb in aliases:
            return [_alias_command(aliases[verb], rest)]
        flags = _without_values(rest) if verb in ("commit", "tag", "merge") else rest
        if any(_DRY.match(word) or word == _SHORT_DRY.get(verb) for word in flags) or rest == ["-h"]:
            return started
        if UNKNOWN in verb:
            self.hidden.append("git with a verb that is not known")
        self.readings.append(_join_command("git", [verb, *rest]))
        hooks = [f"file {join_path(cwd, file)}" for file in hook_files(verb, self._configured | configured)]
        return [*started, *_run_by_git(verb, rest), *self._known_meanings(hooks)]

    def _make(self, words: list[str], stdin: Pieces | None) -> list[str]:
        call = parse_make(words)
        if call.runs_nothing:
            return []
        rules = call.rules
        self.readings += [
            _join_command("make", words[1:]),
            *(_join_command("make", [target]) for target in call.targets),
        ]
        if call.makefile == "-":
            rules += "".join(piece.text for piece in stdin or () if piece.invocation < 0)
        if call.makefile.rpartition("/")[2] not in _MAKEFILES:
            self.hidden.append(f"targets of the makefile {call.makefile}")
        return [text for target in call.targets or [""] if rules and (text := make_recipe(rules, target))]

    def _shell(self, command: ShellCommand) -> list[str]:
        """A shell whose text the parse could not follow."""
        words = command.words
        if any(word in ("--version", "--help") for word in words[1:]):
            return []
        script = next((word for word in words[1:] if not word.startswith(("-", "+"))), "")
        self._add(words[0].rpartition("/")[2], words[1:])
        texts = self._texts_of(f"file {join_path(command.invocation.cwd, script)}") if script else []
        if texts:
            return [_with_arguments(text, words[words.index(script) + 1 :]) for text in texts]
        if script:
            self.unresolved.append(f"file {join_path(command.invocation.cwd, script)}")
        self.hidden.append(
            f"the script {script}" if script and UNKNOWN not in script else "a shell that reads a text from elsewhere"
        )
        return []

    def _code(self, name: str, code: str) -> list[str]:
        """Commands in quotes inside of a program text."""
        commands, hides = read_commands(code)
        if hides:
            self.hidden.append(f"{name} code that starts programs")
        return commands

    def _meaning(self, name: str, words: list[str], cwd: str) -> list[str]:
        if name in ("make", "gmake") and parse_make(words).runs_nothing:
            return []
        meanings = self._known_meanings(keys := _meaning_keys(name, words, cwd))
        if not meanings and name in RUNNERS and any(word in _TASK_VERBS for word in (name, *words[1:2])):
            task = keys[0].split("\0")[2] if keys and keys[0].startswith("recipe ") else ""
            self.hidden += [f"the task {task} of {name}"] if task and not _CUSTOMARY.search(task) else []
        return (
            [_with_arguments(text, words[1:]) for text in meanings]
            if keys[:1] and keys[0].startswith("file ")
            else meanings
        )

    def _known_meanings(self, keys: list[str]) -> list[str]:
        meanings = [text for key in keys for text in self._texts_of(key)]
        self.unresolved += [key for key in keys if self._meanings.pop(key, None) is None]
        return meanings

    def _texts_of(self, key: str) -> list[str]:
        """What a name stands for on disk, and as the command itself writes it before it runs it."""
        if any(is_source_of(key, file) for file in self.writes):
            self.rewritten.append(key)
        own = find_meaning(key, self._texts) if self._texts and key not in self._used else ""
        self._used.add(key)  # A script that runs itself is read once.
        return [text for text in (self._meanings.get(key, ""), own) if text]

    def _behind_link(self, file: str) -> str:
        """`ln -s infra/prod.tf z; echo > z` in one command."""
        for link, target in self._links.items():
            if file == link or file.startswith(f"{link}/"):
                return join_path(link.rpartition("/")[0] or ".", target) + file[len(link) :]
        return ""

    def _note_link(self, words: list[str], cwd: str) -> None:
        operands = [word for word in words[1:] if not word.startswith("-")]
        if len(operands) == 2:
            self._links[join_path(cwd, operands[1])] = operands[0]


def program_name(word: str) -> str:
    """Without its folder and, on Windows, its ending."""
    return re.split(r"[/\\\\]", word)[-1].removesuffix(".exe")


def _written_texts(analysis: Analysis) -> dict[str, str]:
    """Files whose whole new text stands in the command: of heredocs, `echo` and `printf`."""
    sinks = {sink: pieces for path in analysis.paths for sink, pieces in path.outputs.items()}
    texts = {
        sink: "".join(piece.text for piece in pieces)
        for sink, pieces in sinks.items()
        if sink not in _NO_FILES and all(piece.invocation < 0 for piece in pieces)
    }
    return {sink: text.replace(UNKNOWN, "") for sink, text in texts.items() if text.strip(f"{UNKNOWN} \n")}


def _without_values(rest: list[str]) -> list[str]:
    """Options without what follows them: the message of a commit may be `--help`."""
    return [word for at, word in enumerate(rest) if not at or not _TAKES_TEXT.match(rest[at - 1])]


def _with_arguments(text: str, arguments: list[str]) -> str:
    """A script as it is called: `$1` is what stands behind its name."""
    return f"set -- {' '.join(quote_word(word) for word in arguments)}\n{text}" if arguments else text


def _is_dry_run(arguments: list[str]) -> bool:
    # Not where the flag is the value of another one: `npm publish --tag --help` publishes.
    return any(
        _DRY.match(word) and not (at and _TAKES_VALUE.match(arguments[at - 1])) for at, word in enumerate(arguments)
    )


def _run_by_git(verb: str, rest: list[str]) -> list[str]:
    """Commands that git itself starts: `rebase -x`, `bisect run`, `submodule foreach`."""
    if verb in ("bisect", "submodule") and {"run", "foreach"} & set(rest[:2]):
        return launched_commands([word for word in rest if word not in ("run", "foreach")], None)
    match = [rest[at + 1] for at, word in enumerate(rest[:-1]) if _GIT_RUNS.match(word) and "=" not in word]
    match += [word[2:] for word in rest if verb == "grep" and word.startswith("-O")]
    match += [word[5:] for word in rest if word.startswith("ext::")]
    return match + [word.partition("=")[2] for word in rest if "=" in word and _GIT_RUNS.match(word)]


def _join_command(name: str, arguments: Iterable[str]) -> str:
    return " ".join([name, *("".join(BLANK if c.isspace() else c for c in word) for word in arguments)])


def _alias_command(value: str, rest: list[str]) -> str:
    """What git makes of an alias: a shell text behind `!`, else a verb with arguments."""
    tail = join_words(rest)
    return f"{value[1:]} {tail}" if value.startswith("!") else f"git {value} {tail}"


def _awk_text(name: str, words: list[str]) -> str:
    return " ".join(words[1:]) if name.endswith("awk") else ""


def _meaning_keys(name: str, words: list[str], cwd: str) -> list[str]:
    """Under which names the disk may know more about this program."""
    if name == "git":
        at = 1
        while at < len(words) and words[at].startswith("-"):
            at += 2 if words[at] in _GIT_VALUES else 1
        verb = words[at] if at < len(words) else ""
        if verb in ("apply", "am"):
            return [f"patch {join_path(cwd, word)}" for word in words[at + 1 :] if not word.startswith("-")][:4]
        return [f"git {verb}"] if verb and verb not in GIT_VERBS and UNKNOWN not in verb else []
    if name in ("make", "gmake"):
        return _make_keys(words, cwd)
    if name == "ansible-playbook":
        return [f"code {join_path(cwd, word)}" for word in words[1:] if word.endswith((".yml", ".yaml"))][:4]
    if name == "patch":
        return [f"patch {join_path(cwd, word)}" for flag, word in pairwise(words) if flag in ("-i", "--input")]
    if script := _script_file(name, words):
        return [f"code {join_path(cwd, script)}"]
    if name in RUNNERS and not _RECIPE_NOTHING.intersection(words[1:]):
        target = _recipe_target(name, words[1:])
        return (
            [f"recipe {name}\0{cwd}\0{target}"]
            if target or name in ("just", "task", "go-task", "grunt", "gulp")
            else []
        )
    if "/" in words[0] and UNKNOWN not in words[0]:
        return [f"file {join_path(cwd, words[0])}"]
    return []


def _make_keys(words: list[str], cwd: str) -> list[str]:
    call = parse_make(words, cwd)
    makefile = "" if call.makefile.startswith(("-", "&")) else call.makefile
    keys = [f"recipe make\0{call.folder}\0{target}" for target in call.targets or [""]]
    return [f"{key}\0{makefile}" if makefile else key for key in keys]


def _script_file(name: str, words: list[str]) -> str:
    """The file that an interpreter is given to run."""
    by_file = name in ("sed", "gsed", "awk", "gawk", "mawk")
    if by_file:
        return next((words[at + 1] for at, word in enumerate(words[:-1]) if re.match(r"^-[a-zA-Z]*f$", word)), "")
    if not INTERPRETER.match(name) or name in ("vi", "vim", "nvim", "ex", "ed", "m4"):
        return ""
    rest = [word for word in words[1:] if word not in ("run",)] if name in ("deno", "bun") else words[1:]
    if "-m" in rest[:-1] and name.startswith(("python", "pypy")):
        return rest[rest.index("-m") + 1].replace(".", "/") + ".py"
    if any(word in CODE_FLAGS for word in rest):
        return ""
    script = next((word for word in rest if not word.startswith("-")), "")
    return script if "." in script or "/" in script else ""


def _recipe_target(name: str, arguments: list[str]) -> str:
    """The recipe that is asked for: behind `run` where the program has other verbs too."""
    while "--set" in arguments:
        at = arguments.index("--set")
        arguments = [*arguments[:at], *arguments[at + 3 :]]
    operands = [word for at, word in enumerate(arguments) if not word.startswith("-") and "=" not in word
                and not (at and arguments[at - 1] in _RUNNER_VALUES)]  # fmt: skip
    if name == "node":
        return next((word for flag, word in pairwise(arguments) if flag == "--run"), "")
    if name in ("nox", "tox"):
        return next((word for flag, word in pairwise(arguments) if flag in ("-s", "--session", "-e")), "")
    if name == "yarn" and operands[:1] == ["workspace"]:
        operands = operands[2:]
    if operands[:1] and operands[0] in ("run", "run-script", "task", "exec", "x"):
        operands = operands[1:]
    elif name in ("pdm", "hatch", "mise", "deno", "rye"):
        return ""
    target = operands[0] if operands else ""
    return target.rpartition(":")[2] if name in ("hatch", "nx") else target


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
