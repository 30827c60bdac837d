"""What a command is about to do, in a normal form for rules: `FOO=1 /usr/bin/git -C x 'commit'` is `git commit`."""

# Every program that the command may start is one reading; words that are only arguments (of grep, of echo, of a commit
# message) are none.

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import pairwise

import msgspec

from holdfast.analysis.shell import nested_commands
from holdfast.analysis.shell.analysis import Analysis, Ran, ShellCommand, analyse_command
from holdfast.analysis.shell.flow import NULL, STDERR, STDOUT, TERMINAL, literal_text
from holdfast.analysis.shell.git_acts import made_setting, settings_of_variables, started_programs
from holdfast.analysis.shell.git_words import git_verbs, hook_files, option_words, split_git, verb_facts
from holdfast.analysis.shell.nested_commands import join_words, launched_commands
from holdfast.analysis.shell.program_code import is_interpreter, read_commands, script_file, sed_acts, shorten_command
from holdfast.analysis.shell.programs import SHELLS
from holdfast.analysis.shell.recipes import find_meaning, is_source_of, make_recipe, parse_make, recipe_target, runners
from holdfast.analysis.shell.redirects import join_path
from holdfast.analysis.shell.syntax import UNKNOWN
from holdfast.analysis.shell.word_lists import word_list
from holdfast.analysis.shell.written_files import code_of, written_files

MAX_READINGS, MAX_DEPTH = 300, 4
BLANK = "\u2423"
"""Replaces a blank inside a word: `-m 'make deploy'` is one word, not a command."""

_NO_FILES = frozenset((TERMINAL, STDOUT, STDERR, NULL))
_MAKEFILES = frozenset(("", "Makefile", "makefile", "GNUmakefile"))
_DRY = re.compile(r"^--dry-run(?:=(?!none|false).*)?$|^--help$")
_TAKES_VALUE = re.compile(r"^--(?:tag|registry|message|title|body|notes|otp|access|workspace|namespace|context|file)$")
# Tasks with these names are harmless by convention.
_CUSTOMARY = re.compile(
    r"(?i)test|spec|lint|check|build|fmt|format|type|dev|start|watch|compile|clean|install|serve|doc|ci\b|bench|cover|help|list|e2e|unit"
)
# Options of git whose value is a command. Group: the value, where it is in the same word.
_GIT_RUNS = re.compile(r"^(?:-x|-u|--(?:exec|extcmd|upload-pack|receive-pack))(?:=(.*))?$", re.S)
# Words before the name of a program that the parser takes for it, and `spawn` of expect.
_BEFORE_PROGRAM = frozenset(("{", "!", "then", "do", "spawn"))


class CommandActs(msgspec.Struct, frozen=True):
    """What one shell command may do."""

    readings: tuple[str, ...] = ()
    """Each program it may start, as its name and words; without wrappers and options in front of its verb."""
    writes: tuple[str, ...] = ()
    """Files it writes, as far as the command shows; joined with the folder it is in."""
    hidden: tuple[str, ...] = ()
    """What it runs that cannot be read: text from elsewhere, unknown names."""
    rewritten: tuple[str, ...] = ()
    """Scripts and recipes that it both writes and runs, by their names in `meanings`."""
    problem: str = ""
    """Why it could not be followed; then `readings` is the text itself."""


def read_acts(command: str, cwd: str = ".", meanings: Mapping[str, str] | None = None) -> CommandActs:
    """`meanings`: shell text for names that only the disk resolves (`git ci`, `npm run ship`, `./deploy.sh`)."""
    text, whole = shorten_command(command)
    acts = _read_acts(text, cwd, tuple(sorted((meanings or {}).items())))[0]
    return acts if whole else msgspec.structs.replace(acts, hidden=(*acts.hidden, "the end of a very long command"))


@lru_cache(2_000)
def _read_acts(command: str, cwd: str, meanings: tuple[tuple[str, str], ...]) -> tuple[CommandActs, tuple[str, ...]]:
    """Also returns the names that the disk could resolve."""
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
        if analysis.problem:
            self._note_unfollowed(text, "" if depth else analysis.problem)
            return
        files = written_files(analysis, text)
        self.writes += [*files, *self._behind_links(files)]
        self._texts |= _written_texts(analysis)
        for command in analysis.commands:
            if command.ran is not Ran.NO and not command.invocation.shadowed:
                self._read_command(command, depth)
        self.writes += self._behind_links(self.writes)
        sourced = self._known_meanings([f"file {file}" for file in analysis.sourced])
        for later in (*sourced, *analysis.run_later):
            self.read(later, cwd, depth + 1)

    def _note_unfollowed(self, text: str, problem: str) -> None:
        """`problem` is empty for nested text; each of its lines may be a command."""
        self.problem = self.problem or problem
        if not problem:
            self.hidden.append("a script that could not be followed")
        self.readings += [" ".join(one.split()) for one in ([text] if problem else text.splitlines())]

    def _behind_links(self, files: list[str]) -> list[str]:
        """`ln -s infra/prod.tf z; echo > z` in one command."""
        return [
            join_path(link.rpartition("/")[0] or ".", target) + file[len(link) :]
            for file in files
            for link, target in self._links.items()
            if file == link or file.startswith(f"{link}/")
        ]

    def _read_command(self, command: ShellCommand, depth: int) -> None:
        name, words = self._plain_call(command)
        if UNKNOWN in words[0] or re.search(r"[*?\[]", name.rstrip("[")):
            self.hidden.append("a program whose name is not known")
        inner = _OWN_READING.get(name, _Reader._other)(self, name, words, command)
        carried = nested_commands.carried_commands(name, words, command.invocation.stdin)
        if name in word_list("launchers") | word_list("powershells"):
            inner += carried
        else:
            self._read_if_command(carried, command.invocation.cwd, depth)
        inner += self._inside_arguments(name, words, command)
        inner += self._meaning(name, words, command.invocation.cwd)
        inner += self._behind_wrapper(words, command)
        for text in filter(None, inner):
            self.read(text, command.invocation.cwd, depth + 1)

    def _plain_call(self, command: ShellCommand) -> tuple[str, list[str]]:
        """The program by the name in rules: `hub commit` and `git-commit` are `git commit`."""
        words = command.words
        if words[0] in _BEFORE_PROGRAM and len(words) > 1:
            words = words[1:]
        name = program_name(self._links.get(join_path(command.invocation.cwd, words[0]), words[0]))
        if name == "hub":
            return "git", ["git", *words[1:]]
        if name.startswith("git-") and name[4:] in git_verbs():
            return "git", ["git", name[4:], *words[1:]]
        return name, words

    def _inside_arguments(self, name: str, words: list[str], command: ShellCommand) -> list[str]:
        """Commands in code, in the commands of an editor, and in encoded input."""
        inner: list[str] = []
        if is_interpreter(name):
            code = code_of(command) or (" ".join(words[1:]) if name.endswith("awk") else "")
            inner, hides = read_commands(code)
            self.hidden += [f"{name} code that starts programs"] if hides else []
        if name in word_list("editors"):
            inner += [word.partition("!")[2] for word in words[1:] if "!" in word]
        if name in ("sed", "gsed"):
            inner += sed_acts(words[1:])[0]
        return inner + nested_commands.decoded_input(name, words, command.invocation.stdin)

    def _behind_wrapper(self, words: list[str], command: ShellCommand) -> list[str]:
        wrapper = "".join(command.invocation.wrappers[-1:])
        if wrapper == "windows shell":
            return nested_commands.powershell_commands(" ".join(words))
        if wrapper in ("pdm run", "hatch run", "rye run"):
            return self._known_meanings([_recipe_key(wrapper.partition(" ")[0], command.invocation.cwd, words[0])])
        return []

    def _read_if_command(self, texts: list[str], cwd: str, depth: int) -> None:
        """Arguments that may be commands or something else: one that cannot be read is not reported."""
        known = len(self.hidden)
        for text in texts:
            self.read(text, cwd, depth + 1)
        del self.hidden[known:]

    def _other(self, name: str, words: list[str], _command: ShellCommand) -> list[str]:
        """Readings of the whole command, and without the options before its first operand."""
        arguments = words[1:]
        if name in word_list("dry_programs") and _is_dry_run(arguments):
            return []
        self.readings.append(_join_command(name, arguments))
        at = 0
        while at < len(arguments) and arguments[at].startswith("-"):
            at += 1
            self.readings.append(_join_command(name, arguments[at:]))
            if at < len(arguments) and not arguments[at].startswith("-") and "=" not in arguments[at - 1]:
                self.readings.append(_join_command(name, arguments[at + 1 :]))
                if at + 1 < len(arguments) and arguments[at + 1].startswith("-"):
                    at += 1
        return []

    def _link(self, name: str, words: list[str], command: ShellCommand) -> list[str]:
        operands = [word for word in words[1:] if not word.startswith("-")]
        if len(operands) == 2:
            self._links[join_path(command.invocation.cwd, operands[1])] = operands[0]
        return self._other(name, words, command)

    def _unlink(self, name: str, words: list[str], command: ShellCommand) -> list[str]:
        removed = {join_path(command.invocation.cwd, word) for word in words[1:]}
        self._links = {link: to for link, to in self._links.items() if link not in removed}
        return self._other(name, words, command)

    def _git(self, _name: str, words: list[str], command: ShellCommand) -> list[str]:
        environment = command.invocation.environment
        call = split_git(words, environment)
        verb, rest = call.verb, call.arguments
        if not verb:
            return []
        configured = settings_of_variables(environment) | call.settings
        if verb == "config" and (made := made_setting(rest)):
            configured[made[0]] = self._configured[made[0]] = made[1]
            if made[0].startswith("alias."):
                self._meanings[f"git {made[0][6:]}"] = _alias_command(made[1], [])
        if alias := configured.get(f"alias.{verb.lower()}"):
            return [_alias_command(alias, rest)]
        started = started_programs(configured, environment)
        if _is_dry_git(verb, rest):
            return started
        if UNKNOWN in verb:
            self.hidden.append("git with a verb that is not known")
        self.readings.append(_join_command("git", [verb, *rest]))
        hooks = hook_files(verb, self._configured | configured)
        keys = [f"file {join_path(command.invocation.cwd, file)}" for file in hooks]
        return [*started, *_run_by_git(verb, rest), *self._known_meanings(keys)]

    def _make(self, _name: str, words: list[str], command: ShellCommand) -> list[str]:
        call, invocation = parse_make(words), command.invocation
        if UNKNOWN in "".join(words) or "MAKEFILES" in invocation.environment:
            self.hidden.append("make with a target or a makefile that is not known")
        if call.runs_nothing:
            return []
        called = (words[1:], *([target] for target in call.targets))
        self.readings += [_join_command("make", arguments) for arguments in called]
        if call.makefile.rpartition("/")[2] not in _MAKEFILES:
            self.hidden.append(f"targets of the makefile {call.makefile}")
        rules = call.rules + literal_text(invocation.stdin if call.makefile == "-" else None)
        return [make_recipe(rules, target) for target in call.targets or [""]]

    def _shell(self, name: str, words: list[str], command: ShellCommand) -> list[str]:
        """A shell whose text was not followed."""
        if "--version" in words or "--help" in words:
            return []
        self._other(name, words, command)
        at = next((at for at, word in enumerate(words) if at and not word.startswith(("-", "+"))), 0)
        if not at:
            self.hidden.append("a shell that reads a text from elsewhere")
            return []
        key = f"file {join_path(command.invocation.cwd, words[at])}"
        if texts := self._texts_of(key):
            return [_with_arguments(text, words[at + 1 :]) for text in texts]
        self.unresolved.append(key)
        known = UNKNOWN not in words[at]
        self.hidden.append(f"the script {words[at]}" if known else "a shell that reads a text from elsewhere")
        return []

    def _meaning(self, name: str, words: list[str], cwd: str) -> list[str]:
        """Aliases, recipes and scripts behind the name."""
        if name in ("make", "gmake") and parse_make(words).runs_nothing:
            return []
        keys = _meaning_keys(name, words, cwd)
        meanings = self._known_meanings(keys)
        kind, _, rest = "".join(keys[:1]).partition(" ")
        if kind == "recipe" and not meanings and word_list("task_verbs") & {name, *words[1:2]}:
            task = rest.split("\0")[2]
            self.hidden += [f"the task {task} of {name}"] if task and not _CUSTOMARY.search(task) else []
        return [_with_arguments(text, words[1:]) for text in meanings] if kind == "file" else meanings

    def _known_meanings(self, keys: list[str]) -> list[str]:
        meanings = [text for key in keys for text in self._texts_of(key)]
        self.unresolved += [key for key in keys if self._meanings.pop(key, None) is None]
        return meanings

    def _texts_of(self, key: str) -> list[str]:
        """The text on disk, and the text that the command itself writes before it runs it."""
        if any(is_source_of(key, file) for file in self.writes):
            self.rewritten.append(key)
        own = find_meaning(key, self._texts) if self._texts and key not in self._used else ""
        self._used.add(key)  # A script that runs itself is read once.
        return [text for text in (self._meanings.get(key, ""), own) if text]


_OWN_READING: dict[str, Callable[[_Reader, str, list[str], ShellCommand], list[str]]] = {
    **dict.fromkeys(("ln", "cp", "install"), _Reader._link),
    **dict.fromkeys(("rm", "unlink"), _Reader._unlink),
    **dict.fromkeys(("make", "gmake"), _Reader._make),
    **dict.fromkeys(SHELLS, _Reader._shell),
    "git": _Reader._git,
}


def program_name(word: str) -> str:
    """Without its folder and, on Windows, its ending."""
    return re.split(r"[/\\\\]", word)[-1].removesuffix(".exe")


def _written_texts(analysis: Analysis) -> dict[str, str]:
    """Files whose new text is in the command: from heredocs, `echo`, `printf`."""
    sinks = {sink: pieces for path in analysis.paths for sink, pieces in path.outputs.items()}
    texts = {
        sink: literal_text(pieces)
        for sink, pieces in sinks.items()
        if sink not in _NO_FILES and all(piece.invocation < 0 for piece in pieces)
    }
    return {sink: text.replace(UNKNOWN, "") for sink, text in texts.items() if text.strip(f"{UNKNOWN} \n")}


def _with_arguments(text: str, arguments: list[str]) -> str:
    """Sets `$1` and the rest for a script."""
    return f"set -- {join_words(arguments)}\n{text}" if arguments else text


def _is_dry_run(arguments: list[str]) -> bool:
    # Not where the flag is the value of another one: `npm publish --tag --help` publishes.
    return any(_DRY.match(word) and not _TAKES_VALUE.match(before) for before, word in pairwise(["", *arguments]))


def _is_dry_git(verb: str, rest: list[str]) -> bool:
    dry = verb_facts(verb).dry
    return rest == ["-h"] or any(_DRY.match(word) or word == dry for word in option_words(verb, rest))


def _run_by_git(verb: str, rest: list[str]) -> list[str]:
    """Commands that git itself starts: `rebase -x`, `bisect run`, `submodule foreach`."""
    if verb in ("bisect", "submodule") and {"run", "foreach"} & set(rest[:2]):
        return launched_commands([word for word in rest if word not in ("run", "foreach")], None)
    commands: list[str] = []
    for word, after in pairwise([*rest, ""]):
        if option := _GIT_RUNS.match(word):
            commands.append(after if option[1] is None else option[1])
        elif word.startswith("ext::") or (verb == "grep" and word.startswith("-O")):
            commands.append(word.removeprefix("ext::").removeprefix("-O"))
    return list(filter(None, commands))


def _join_command(name: str, arguments: Iterable[str]) -> str:
    return " ".join([name, *("".join(BLANK if c.isspace() else c for c in word) for word in arguments)])


def _alias_command(value: str, rest: list[str]) -> str:
    """`!TEXT` is shell text; any other alias is a verb with arguments."""
    tail = join_words(rest)
    return f"{value[1:]} {tail}" if value.startswith("!") else f"git {value} {tail}"


# ── under which names the disk may know more about a program ─────────────────────────────────────────────────────────


def _meaning_keys(name: str, words: list[str], cwd: str) -> list[str]:
    if find_keys := _KEYS.get(name):
        return find_keys(words, cwd)
    if script := script_file(name, words):
        return [f"code {join_path(cwd, script)}"]
    if name in runners() and not word_list("recipe_nothing").intersection(words[1:]):
        target = recipe_target(name, words[1:])
        return [_recipe_key(name, cwd, target)] if target or runners()[name].has_default else []
    return [f"file {join_path(cwd, words[0])}"] if "/" in words[0] and UNKNOWN not in words[0] else []


def _recipe_key(runner: str, folder: str, target: str, makefile: str = "") -> str:
    return "\0".join([f"recipe {runner}", folder, target, *([makefile] if makefile else ())])


def _git_keys(words: list[str], cwd: str) -> list[str]:
    call = split_git(words)
    if call.verb in ("apply", "am"):
        return [f"patch {join_path(cwd, word)}" for word in call.arguments if not word.startswith("-")][:4]
    return [f"git {call.verb}"] if call.verb and call.verb not in git_verbs() and UNKNOWN not in call.verb else []


def _make_keys(words: list[str], cwd: str) -> list[str]:
    call = parse_make(words, cwd)
    makefile = "" if call.makefile.startswith(("-", "&")) else call.makefile
    return [_recipe_key("make", call.folder, target, makefile) for target in call.targets or [""]]


def _playbook_keys(words: list[str], cwd: str) -> list[str]:
    return [f"code {join_path(cwd, word)}" for word in words[1:] if word.endswith((".yml", ".yaml"))][:4]


def _patch_keys(words: list[str], cwd: str) -> list[str]:
    return [f"patch {join_path(cwd, word)}" for flag, word in pairwise(words) if flag in ("-i", "--input")]


_KEYS: dict[str, Callable[[list[str], str], list[str]]] = {
    "git": _git_keys,
    "make": _make_keys,
    "gmake": _make_keys,
    "ansible-playbook": _playbook_keys,
    "patch": _patch_keys,
}
