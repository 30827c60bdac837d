"""Recipes of task runners (make, just, task, npm and the like) as shell text: what `just ship` comes down to."""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import pairwise, takewhile
from typing import Any

import msgspec

from holdfast.analysis.shell.program_code import literal_texts, shell_of_code
from holdfast.analysis.shell.redirects import join_path
from holdfast.analysis.shell.word_lists import by_single_name, word_list
from holdfast.core.data_files import load_data
from holdfast.core.lazy import lazy_pattern

ReadText = Callable[[str], str]
"""The text of a file; empty when it cannot be read."""
MAX_INCLUDES = 5
# Options of make whose value is the next word.
_MAKE_VALUES = frozenset("-C -f -I -j -l -o -W --directory --file --makefile --include-dir --eval -E".split())
_MAKE_FIELDS = {
    "-C": "folder", "--directory": "folder", "-f": "makefile", "--file": "makefile", "--makefile": "makefile", "--eval": "rules",
}  # fmt: skip
# Among the letters of a flag: dry run, question, version, help. Not behind a letter that takes a value: `-Ctests`.
_MAKE_NOTHING = lazy_pattern(r"^-[BbdeikLmprRsStw]*[nqvh]|^--(?:dry-run|just-print|recon|question|version|help)$")
_MAKE_TOUCHES = lazy_pattern(r"^-[BbdeikLmprRsSw]*t|^--touch$")
# `a b: c d` or `a: c; command`, but neither `a := b` nor `a:: b`. Groups: the targets, what they need, a command.
_MAKE_RULE = lazy_pattern(r"^([^\s:#=][^:=#;]*):(?![=:])([^;#\n]*)(?:;(.*))?$")
# `@name parameters: dependencies`.
_JUST_RULE = lazy_pattern(r"^@?([\w-]+)(?:\s+[^:\n]*)?:(?!=)([^#\n]*)()$")
_MAKE_NAME = lazy_pattern(r"(?<!\S)[\w./-]+(?!\S)")
_INCLUDE = lazy_pattern(r"^-?include\s+(\S+)\s*$", re.M)
_DEFAULT_GOAL = lazy_pattern(r"^\.DEFAULT_GOAL\s*:?=\s*(\S+)", re.M)
EDITOR_TASK = "editor-task"
"""As if it were a program: a task of an editor, which its tools run by name."""


class Runner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of `recipes.toml`."""

    files: str
    reader: str
    option: str = ""
    entry: str = ""
    behind_verb: bool = False
    has_default: bool = False


@cache
def runners() -> dict[str, Runner]:
    """Programs whose operand names a recipe of a file in the repository."""
    return by_single_name(load_data(__file__, "recipes", dict[str, Runner]))


@cache
def _recipe_files() -> frozenset[str]:
    return frozenset(file for runner in runners().values() for file in runner.files.split())


def read_recipe(runner: str, target: str, folder: str, read: ReadText, makefile: str = "") -> str:
    """Shell text; empty where the file or the recipe is not there. `target` is empty for the one that is the default."""
    row = runners()[runner]
    if row.reader == "make":
        text = read(join_path(folder, makefile)) if makefile else _recipe_text(row, folder, read)
        return make_recipe(_with_includes(text, folder, read), target, makefile)
    return _READERS[row.reader](_recipe_text(row, folder, read), target, row)


def read_main_file(runner: str, folder: str, read: ReadText) -> str:
    """The file in which make or just look for a recipe: it has their variables too."""
    return _recipe_text(runners()[runner], folder, read) if runner in ("make", "gmake", "just") else ""


def _recipe_text(runner: Runner, folder: str, read: ReadText) -> str:
    return next((text for name in runner.files.split() if (text := read(join_path(folder, name)))), "")


def find_meaning(key: str, texts: Mapping[str, str]) -> str:
    """A meaning by files that are not on disk yet."""
    kind, _, rest = key.partition(" ")
    if kind == "file":
        return texts.get(rest, "")
    if kind == "code":
        return shell_of_code(texts.get(rest, ""), rest.rpartition(".")[2])
    if kind != "recipe":
        return ""
    # As `_make_keys` and `_recipe_keys` in command_effects.py join them.
    runner, folder, target, *makefile = rest.split("\0")
    return read_recipe(runner, target, folder, lambda path: texts.get(path, ""), "".join(makefile))


def is_source_of(key: str, file: str) -> bool:
    """Whether a file that is written decides what the name means."""
    kind, _, rest = key.partition(" ")
    if kind in ("file", "code"):
        return file == rest
    if kind != "recipe":
        return False
    _, folder, _, *makefile = rest.split("\0")
    return any(file == join_path(folder, name) for name in makefile or _recipe_files())


def recipe_target(name: str, arguments: list[str]) -> str:
    """The recipe that is asked for: behind `run` where the program has other verbs too."""
    runner = runners()[name]
    if runner.option:
        return next((word for flag, word in pairwise(arguments) if flag in runner.option.split()), "")
    operands = _runner_operands(arguments)
    if name == "yarn" and operands[:1] == ["workspace"]:
        operands = operands[2:]
    if {"run", "run-script", "task", "exec", "x"}.intersection(operands[:1]):
        operands = operands[1:]
    elif runner.behind_verb:
        return ""
    target = "".join(operands[:1])
    return target.rpartition(":")[2] if name in ("hatch", "nx") else target


def _runner_operands(arguments: list[str]) -> list[str]:
    # `--set NAME VALUE` is the only option with two values.
    while "--set" in arguments:
        at = arguments.index("--set")
        arguments = [*arguments[:at], *arguments[at + 3 :]]
    valued = word_list("runner_values")
    return [
        word
        for before, word in pairwise(["", *arguments])
        if not word.startswith("-") and "=" not in word and before not in valued
    ]


# ── make and just ────────────────────────────────────────────────────────────────────────────────────────────────────


def _with_includes(text: str, folder: str, read: ReadText) -> str:
    for name in _INCLUDE.findall(text)[:MAX_INCLUDES]:
        text += "\n" + read(join_path(folder, name))
    return text


def _parse_rules(text: str, header: re.Pattern[str], indent: str) -> Iterator[tuple[list[str], str, list[str]]]:
    """Each rule: its names, what it needs, its lines."""
    names, needs, body = list[str](), "", list[str]()
    for line in text.splitlines():
        if line.startswith(tuple(indent)):
            body.append(_recipe_line(line))
        elif match := header.match(line):
            yield names, needs, body
            names, needs, body = match[1].split(), match[2], [_recipe_line(match[3])] if match[3] else []
        elif line.strip() and not line.startswith("#"):
            yield names, needs, body
            names, needs, body = [], "", []
    yield names, needs, body


def make_recipe(text: str, target: str, makefile: str = "") -> str:
    """Its lines, and `make` of what it needs first. Without a target the first one counts."""
    # In both spellings where another file is named: a rule about `make deploy` means the target, whatever file leads to it.
    calls = (f"make -f {makefile}", "make") if makefile else ("make",)
    rules = list(_parse_rules(text, _MAKE_RULE, "\t"))
    if not target:
        default = _default_goal(text, rules)
        return "\n".join(f"{call} {default}" for call in calls if default)
    lines: list[str] = []
    for names, needs, body in rules:
        if target in names:
            lines += [f"{call} {need}" for need in _MAKE_NAME.findall(needs) for call in calls]
            lines += body
    return "\n".join(lines)


def _default_goal(text: str, rules: list[tuple[list[str], str, list[str]]]) -> str:
    named = _DEFAULT_GOAL.search(text)
    # `.PHONY` and its like are never the default.
    firsts = (names[0] for names, _, _ in rules if names and not names[0].startswith("."))
    return named[1] if named else next(firsts, "")


def _just_recipe(text: str, target: str, _runner: Runner) -> str:
    rules = [rule for rule in _parse_rules(text, _JUST_RULE, " \t") if rule[0]]
    # Without a name just runs its first recipe.
    target = target or (rules[0][0][0] if rules else "")
    lines: list[str] = []
    for names, needs, body in rules:
        if target in names:
            lines += [f"just {need}" for need in re.findall(r"[\w-]+", needs)] + body
    return "\n".join(lines)


class MakeCall(msgspec.Struct):
    """What a call of make asks for, and where it says that its rules are."""

    targets: list[str] = []
    makefile: str = ""
    folder: str = ""
    rules: str = ""
    """Of `--eval`."""
    runs_nothing: str = ""
    """The flag by which it runs no recipe."""
    touches: str = ""
    """The flag by which it marks targets as made: no check runs, but files change."""


def parse_make(words: list[str], cwd: str = "") -> MakeCall:
    call, at = MakeCall(folder=cwd), 1
    while at < len(words):
        word, following = words[at], "".join(words[at + 1 : at + 2])
        _take_make_word(call, word, following)
        # `make -j deploy`: the number may be left out.
        bare_jobs = word in ("-j", "-l") and not following.isdecimal()
        at += 2 if word in _MAKE_VALUES and not bare_jobs else 1
    return call


def _take_make_word(call: MakeCall, word: str, following: str) -> None:
    flag, equals, value = word.partition("=")
    if _MAKE_NOTHING.match(word):
        call.runs_nothing = word
    elif _MAKE_TOUCHES.match(word):
        call.touches = word
    elif flag in _MAKE_FIELDS:
        _set_make_field(call, _MAKE_FIELDS[flag], value if equals else following)
    elif word[:2] in _MAKE_FIELDS:
        _set_make_field(call, _MAKE_FIELDS[word[:2]], word[2:])
    elif not word.startswith("-") and not equals:
        call.targets.append(word)


def _set_make_field(call: MakeCall, field: str, value: str) -> None:
    if field == "folder":
        call.folder = join_path(call.folder, value)
    elif field == "makefile":
        call.makefile = value
    else:
        call.rules += f"\n{value}"


def _recipe_line(line: str) -> str:
    # `@` hides the line, `-` ignores its failure, `+` runs it even in a dry run.
    return re.sub(r"^[@+-]+", "", line.strip()).replace("$(MAKE)", "make").replace("${MAKE}", "make")


# ── other runners ────────────────────────────────────────────────────────────────────────────────────────────────────


def _task_recipe(text: str, target: str) -> str:
    """A Taskfile without anchors and other rare YAML: its commands stand behind `- ` or `cmd:`, or in one line."""
    block = _yaml_block(_yaml_block(text, "tasks"), target or "default")
    lines = []
    for line in block.splitlines():
        match = re.match(r"^\s*(?:-\s+)?(?:(cmd|task|deps|sh|cmds)\s*:\s*)?(.*?)\s*$", line)
        kind, value = (match[1] or "", match[2].strip("'\"")) if match else ("", "")
        names = re.findall(r"[\w:-]+", value) if kind in ("task", "deps") else []
        lines += [f"task {name}" for name in names] or ([value] if value and kind != "cmds" else [])
    return "\n".join(lines)


def _yaml_block(text: str, key: str) -> str:
    """The lines below a key, with the rest of its own line."""
    lines, indent = [], -1
    for line in text.splitlines():
        at = len(line) - len(line.lstrip())
        if indent >= 0 and line.strip() and at <= indent:
            break
        if indent >= 0:
            lines.append(line)
        elif match := re.match(rf"^\s*['\"]?{re.escape(key)}['\"]?\s*:\s*(.*)$", line):
            indent = at
            lines.append(match[1])
    return "\n".join(lines)


def _package_scripts(scripts: Any, target: str) -> str:
    """With what runs before and after it."""
    return "\n".join(filter(None, (_shell_text(scripts, name) for name in (f"pre{target}", target, f"post{target}"))))


def _pyproject_recipe(document: dict[str, Any], target: str) -> str:
    tool = document.get("tool", {})
    tables = [
        tool.get("poe", {}).get("tasks"),
        tool.get("pdm", {}).get("scripts"),
        tool.get("taskipy", {}).get("tasks"),
    ]
    tables += [one.get("scripts") for one in tool.get("hatch", {}).get("envs", {}).values() if isinstance(one, dict)]
    tables += [tool.get("rye", {}).get("scripts")]
    return "\n".join(filter(None, (_shell_text(table, target) for table in tables)))


def _shell_text(table: Any, name: str) -> str:
    """An entry of a table of tasks: a text, a list of them, or a table that names it."""
    value = table.get(name) if isinstance(table, dict) else None
    if isinstance(value, dict):
        value = next((value[key] for key in ("cmd", "shell", "run", "command", "script") if value.get(key)), "")
    if isinstance(value, list):
        return "\n".join(str(one) for one in value)
    return value if isinstance(value, str) else ""


def _indented_block(text: str, header: str) -> list[str]:
    """The line that matches, and those below it that are further in (of a section: up to the next one)."""
    begins = re.search(rf"(?mi)^([ \t]*){header}.*$", text)
    if begins is None:
        return []
    first, *rest = text[begins.start() :].splitlines()

    def belongs(line: str) -> bool:
        if first.startswith("["):
            return not line.startswith("[")
        return not line.strip() or len(line) - len(line.lstrip()) > len(begins[1]) or line[:1] == "}"

    return [first, *takewhile(belongs, rest)]


def _named_block(text: str, target: str, _runner: Runner) -> str:
    """The lines below a name and those further in: as commands where they are some, else as code that starts them."""
    name = re.escape(target.strip("+:").rpartition(":")[2])
    body = _indented_block(text, rf"(?:\[testenv:|task[_ ]|def task_|func |tasks\.\w+[(\"']+)?{name}\b") if name else []
    lines = [re.sub(r"^\s*(?:RUN|commands(?:_pre|_post)?\s*=|-)\s*", "", line).strip() for line in body[1:]]
    plain = [line for line in lines if re.match(r"[a-z./][\w./-]*(?: |$)", line)]
    return "\n".join([shell_of_code("\n".join(body)), *_quoted_lines("\n".join(body)), *plain]) if body else ""


def _quoted_lines(code: str) -> list[str]:
    """Texts in quotes that may be commands: in one line, with arguments."""
    return [text for text in literal_texts(code) if " " in text.strip() and "\n" not in text]


def _code_block(text: str, target: str, _runner: Runner) -> str:
    """`task :ship do … end` or `def ship(c): …`, as the commands that its code starts."""
    name = re.escape(target.replace("-", "_"))
    header = rf"(?:task\s+[:\"']?{name}\b|(?:async\s+)?def\s+{name}\b)"
    return shell_of_code("\n".join(_indented_block(text, header))) if target else ""


def _js_task(text: str, target: str, runner: str) -> str:
    """`grunt.registerTask('ship', [...])`, `exports.ship = …`, a function or an entry of that name: the commands that its
    code starts, and the tasks that it names."""
    # `shell:deploy` is the entry `deploy` of a task that runs it.
    target = target or "default"
    name = re.escape(target.rpartition(":")[2])
    begins = re.finditer(
        rf"\b(?:registerTask|registerMultiTask|task)\(\s*['\"`]{name}['\"`]|\b(?:exports\.|(?:async )?function\s+|const\s+|let\s+|export\s+const\s+){name}\b"
        rf"|(?m:^)\s*['\"]?{name}['\"]?\s*:",
        text,
    )
    lines: list[str] = []
    for body in [_balanced(text, match.end()) for match in begins]:
        listed = re.findall(r"\b(?:series|parallel)\(([^()]*)\)", body)
        # `exports.default = build`.
        called = [*re.findall(r"\w+", " ".join(listed)), *re.findall(r"^\s*=\s*(\w+)\s*;?\s*$", body)]
        tasks = [
            one for one in (*literal_texts(body), *called) if re.fullmatch(r"[A-Za-z][\w:.-]*", one) and one != target
        ]
        lines += [shell_of_code(body), *_quoted_lines(body), *(f"{runner} {one}" for one in dict.fromkeys(tasks))]
    return "\n".join(filter(None, lines))


def _balanced(text: str, at: int) -> str:
    """From there to the end of the call, the block or the line: whichever closes all that was opened."""
    depth, opened = 0, False
    for end in range(at, len(text)):
        if text[end] in "([{":
            depth, opened = depth + 1, True
        elif text[end] in ")]}":
            depth -= 1
        if depth < 0 or (depth == 0 and text[end] in "};\n" and (opened or text[end] != "}")):
            return text[at : end + 1]
    return text[at:]


def _editor_task(text: str, target: str, _runner: Runner) -> str:
    """A task of VS Code, with those it depends on. Its file may have comments and a comma behind the last entry."""
    plain = re.sub(r",(\s*[}\]])", r"\1", re.sub(r"(?m)^\s*//.*$", "", text))
    tasks = [one for one in _parse_json(plain).get("tasks") or () if isinstance(one, dict)]
    named = [one for one in tasks if target in (one.get("label"), one.get("taskName"), one.get("script"))]
    return "\n".join(line for task in named for line in _editor_task_lines(task))


def _editor_task_lines(task: dict[str, Any]) -> Iterator[str]:
    needs = task.get("dependsOn") or []
    for need in needs if isinstance(needs, list) else [needs]:
        yield f"{EDITOR_TASK} {shlex.quote(str(need))}"
    if task.get("type") == "npm" and task.get("script"):
        yield f"npm run {task['script']}"
    if isinstance(task.get("command"), str):
        yield " ".join([task["command"], *(shlex.quote(str(one)) for one in task.get("args") or [])])


def _parse_json(text: str) -> dict[str, Any]:
    try:
        document = msgspec.json.decode(text or b"{}")
    except msgspec.DecodeError:
        return {}
    return document if isinstance(document, dict) else {}


def _parse_toml(text: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}


_READERS: dict[str, Callable[[str, str, Runner], str]] = {
    "just": _just_recipe,
    "task": lambda text, target, _: _task_recipe(text, target),
    "package": lambda text, target, _: _package_scripts(_parse_json(text).get("scripts"), target),
    "json": lambda text, target, row: _shell_text(_parse_json(text).get(row.entry), target),
    "toml": lambda text, target, row: _shell_text(_parse_toml(text).get(row.entry), target),
    "pyproject": lambda text, target, _: _pyproject_recipe(_parse_toml(text), target),
    "grunt": lambda text, target, _: _js_task(text, target, "grunt"),
    "gulp": lambda text, target, _: _js_task(text, target, "gulp"),
    "editor": _editor_task,
    "block": _named_block,
    "processes": lambda text, _target, _row: re.sub(r"(?m)^[\w-]+:", "", text),
    "code": _code_block,
}
