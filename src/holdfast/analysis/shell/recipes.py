"""Recipes of task runners (make, just, task, npm and the like) as shell text: what `just ship` comes down to."""

import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from holdfast.analysis.shell.redirects import join_path
from holdfast.core.lazy import lazy_pattern

ReadText = Callable[[str], str]
"""The text of a file; empty when it cannot be read."""
MAKE_FILES = ("GNUmakefile", "makefile", "Makefile")
_JUST_FILES = ("justfile", "Justfile", ".justfile")
_TASK_FILES = ("Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "Taskfile.dist.yml")
_GRUNT_FILES = tuple(f"Gruntfile.{suffix}" for suffix in ("js", "cjs", "ts", "coffee"))
_GULP_FILES = tuple(f"gulpfile.{suffix}" for suffix in ("js", "mjs", "cjs", "ts", "babel.js"))
_VSCODE_TASKS = ".vscode/tasks.json"
_CODE_FILES = ("Rakefile", "noxfile.py", "tasks.py", "fabfile.py", "Rakefile.rb")
RECIPE_FILES = (
    *MAKE_FILES, *_JUST_FILES, *_TASK_FILES, *_CODE_FILES, "package.json", "deno.json", "deno.jsonc", "composer.json",
    "pyproject.toml", "mise.toml", ".mise.toml", "tox.ini", "dodo.py", "magefile.go", "Earthfile", "build.gradle", "build.gradle.kts", "Procfile",
    *_GRUNT_FILES, *_GULP_FILES, _VSCODE_TASKS,
)  # fmt: skip
"""Files of a folder that say what the names of its tasks mean."""
MAX_INCLUDES = 5
# Options of make whose value is the next word.
_MAKE_VALUES = frozenset("-C -f -I -j -l -o -W --directory --file --makefile --include-dir --eval -E".split())
# Among the letters of a flag: dry run, question, version, help. Not behind a letter that takes a value: `-Ctests`.
_MAKE_NOTHING = lazy_pattern(r"^-[BbdeikLmprRsStw]*[nqvh]|^--(?:dry-run|just-print|recon|question|version|help)$")
_MAKE_TOUCHES = lazy_pattern(r"^-[BbdeikLmprRsSw]*t|^--touch$")
_SCRIPTS_OF_PACKAGE = frozenset(("npm", "pnpm", "yarn", "bun", "node", "turbo", "nx", "lerna"))
# Runners whose file has a block of lines under the name of a task, with those files.
_BLOCK_FILES = {
    "tox": ("tox.ini",), "doit": ("dodo.py",), "mage": ("magefile.go",), "earthly": ("Earthfile",),
    **dict.fromkeys(("gradle", "gradlew"), ("build.gradle", "build.gradle.kts")), **dict.fromkeys(("foreman", "honcho"), ("Procfile",)),
}  # fmt: skip
# `a b: c d`, but neither `a := b` nor `a:: b`. Groups: the targets, what they need.
_TARGET = lazy_pattern(r"^([^\s:#=][^:=#]*):(?![=:])([^#\n]*)$")
# The same with its recipe in the line: `a: b; command`.
_EVAL_TARGET = lazy_pattern(r"^([^\s:#=][^:=#;]*):(?![=:])([^;#\n]*);(.*)$")
_INCLUDE = lazy_pattern(r"^-?include\s+(\S+)\s*$", re.M)
_DEFAULT_GOAL = lazy_pattern(r"^\.DEFAULT_GOAL\s*:?=\s*(\S+)", re.M)
# `@name parameters: dependencies`.
_JUST_TARGET = lazy_pattern(r"^@?([\w-]+)((?:\s+[^:\n]*)?):(?!=)([^#\n]*)$")
EDITOR_TASK = "editor-task"
"""As if it were a program: a task of an editor, which its tools run by name."""
RUNNERS = frozenset(
    "make gmake just task go-task npm pnpm yarn bun node deno composer poe pdm hatch mise rake invoke inv fab nox taskipy rye "
    "turbo nx lerna tox doit mage gradle gradlew earthly foreman honcho grunt gulp "
    f"{EDITOR_TASK}".split()
)
"""Programs whose operand names a recipe of a file in the repository."""


def read_recipe(runner: str, target: str, folder: str, read: ReadText, makefile: str = "") -> str:
    """Shell text; empty where the file or the recipe is not there. `target` is empty for the one that is the default."""

    def first(*names: str) -> str:
        return next((text for name in names if (text := read(join_path(folder, name)))), "")

    if runner in ("make", "gmake"):
        text = read(join_path(folder, makefile)) if makefile else first(*MAKE_FILES)
        return make_recipe(_with_includes(text, folder, read), target, makefile)
    if runner == "just":
        return _just_recipe(first(*_JUST_FILES), target)
    if runner in ("task", "go-task"):
        return _task_recipe(first(*_TASK_FILES), target)
    if runner in _SCRIPTS_OF_PACKAGE:
        return _package_scripts(_parse_json(first("package.json")).get("scripts"), target)
    if runner == "deno":
        return _shell_text(_parse_json(first("deno.json", "deno.jsonc")).get("tasks"), target)
    if runner == "composer":
        return _shell_text(_parse_json(first("composer.json")).get("scripts"), target)
    if runner in ("poe", "pdm", "hatch", "taskipy", "rye"):
        return _pyproject_recipe(_parse_toml(first("pyproject.toml")), target)
    if runner == "mise":
        return _shell_text(_parse_toml(first("mise.toml", ".mise.toml")).get("tasks"), target)
    if runner in ("grunt", "gulp"):
        return _js_task(first(*(_GRUNT_FILES if runner == "grunt" else _GULP_FILES)), target or "default", runner)
    if runner == EDITOR_TASK:
        return _editor_task(first(_VSCODE_TASKS), target)
    if runner in _BLOCK_FILES:
        text = first(*_BLOCK_FILES[runner])
        return _named_block(text, target) if runner not in ("foreman", "honcho") else re.sub(r"(?m)^[\w-]+:", "", text)
    return _code_block(first(*_CODE_FILES), target)


def read_main_file(runner: str, folder: str, read: ReadText) -> str:
    """The file in which make or just look for a recipe: it has their variables too."""
    names = {"make": MAKE_FILES, "gmake": MAKE_FILES, "just": _JUST_FILES}.get(runner, ())
    return next((text for name in names if (text := read(join_path(folder, name)))), "")


def find_meaning(key: str, texts: Mapping[str, str]) -> str:
    """A meaning by files that are not on disk yet."""
    kind, _, rest = key.partition(" ")
    if kind == "file":
        return texts.get(rest, "")
    if kind == "code":
        from holdfast.analysis.shell.program_code import shell_of_code

        return shell_of_code(texts.get(rest, ""), rest.rpartition(".")[2])
    if kind != "recipe":
        return ""
    # As `_make_keys` and `_meaning_keys` in acts.py join them.
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
    names = makefile or RECIPE_FILES
    return any(file == join_path(folder, name) for name in names)


def _with_includes(text: str, folder: str, read: ReadText) -> str:
    for name in _INCLUDE.findall(text)[:MAX_INCLUDES]:
        text += "\n" + read(join_path(folder, name))
    return text


def make_recipe(text: str, target: str, makefile: str = "") -> str:
    """Its lines, and `make` of what it needs first. Without a target the first one counts."""
    # In both spellings where another file is named: a rule about `make deploy` means the target, whatever file leads to it.
    calls = (f"make -f {makefile}", "make") if makefile else ("make",)
    if not target:
        default = _default_target(text)
        return "\n".join(f"{call} {default}" for call in calls) if default else ""
    lines: list[str] = []
    taking = False
    for line in text.splitlines():
        if match := _EVAL_TARGET.match(line):
            if target in match[1].split():
                lines.append(_recipe_line(match[3]))
        elif match := _TARGET.match(line):
            taking = target in match[1].split()
            needs = [need for need in match[2].split() if taking and re.fullmatch(r"[\w./-]+", need)]
            lines += [f"{call} {need}" for need in needs for call in calls]
        elif line.startswith("\t") and taking:
            lines.append(_recipe_line(line))
        elif line.strip() and not line.startswith(("#", "\t")):
            taking = False
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
        at += 2 if word in _MAKE_VALUES and not _is_bare_jobs(words, at) else 1
    return call


def _take_make_word(call: MakeCall, word: str, following: str) -> None:
    _, equals, value = word.partition("=")
    if _MAKE_NOTHING.match(word):
        call.runs_nothing = word
    elif _MAKE_TOUCHES.match(word):
        call.touches = word
    elif word in ("-C", "--directory") or word.startswith("--directory="):
        call.folder = join_path(call.folder, value if equals else following)
    elif word.startswith("-C"):
        call.folder = join_path(call.folder, word[2:])
    elif word in ("-f", "--file", "--makefile"):
        call.makefile = following
    elif word.startswith(("--file=", "--makefile=")):
        call.makefile = value
    elif word.startswith("-f"):
        call.makefile = value or word[2:]
    elif word == "--eval" or word.startswith("--eval="):
        call.rules += "\n" + (value or following)
    elif not word.startswith("-") and not equals:
        call.targets.append(word)


def _is_bare_jobs(words: list[str], at: int) -> bool:
    """`make -j deploy`: the number may be left out."""
    return words[at] in ("-j", "-l") and not words[at + 1 : at + 2][0].isdecimal() if at + 1 < len(words) else True


def _recipe_line(line: str) -> str:
    # `@` hides the line, `-` ignores its failure, `+` runs it even in a dry run.
    return re.sub(r"^[@+-]+", "", line.strip()).replace("$(MAKE)", "make").replace("${MAKE}", "make")


def _default_target(text: str) -> str:
    if named := _DEFAULT_GOAL.search(text):
        return named[1]
    targets = [match[1].split()[0] for line in text.splitlines() if (match := _TARGET.match(line))]
    # `.PHONY` and its like are never the default.
    return next((name for name in targets if not name.startswith(".")), "")


def _just_recipe(text: str, target: str) -> str:
    lines: list[str] = []
    taking = False
    for line in text.splitlines():
        if line[:1] in (" ", "\t"):
            lines += [line.strip().lstrip("@-")] if taking else []
        elif match := _JUST_TARGET.match(line):
            # Without a name just runs its first recipe.
            target = target or match[1]
            taking = match[1] == target
            needs = re.findall(r"[\w-]+", match[3].replace("&&", " "))
            lines += [f"just {need}" for need in needs if taking]
        elif line.strip():
            taking = False
    return "\n".join(lines)


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
    """What is below a key, with what stands in its own line."""
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


def _named_block(text: str, target: str) -> str:
    """The lines below a name and those further in: as commands where they are some, else as code that starts them."""
    from holdfast.analysis.shell.program_code import literal_texts, shell_of_code

    name = re.escape(target.strip("+:").rpartition(":")[2])
    begins = (
        re.search(rf"(?mi)^(\s*)(?:\[testenv:|task[_ ]|def task_|func |tasks\.\w+[(\"']+)?{name}\b.*$", text)
        if name
        else None
    )
    if begins is None:
        return ""
    rest = text[begins.start() :].splitlines()
    indent = len(begins[1].strip("\n"))
    section = rest[0].startswith("[")
    body = [rest[0]]
    for line in rest[1:]:
        if (
            line.startswith("[")
            if section
            else line.strip() and len(line) - len(line.lstrip()) <= indent and line[:1] != "}"
        ):
            break
        body.append(line)
    lines = [re.sub(r"^\s*(?:RUN|commands(?:_pre|_post)?\s*=|-)\s*", "", line).strip() for line in body[1:]]
    quoted = [one for one in literal_texts("\n".join(body)) if " " in one.strip() and "\n" not in one]
    plain = [line for line in lines if re.match(r"[a-z./][\w./-]*(?: |$)", line)]
    return "\n".join([shell_of_code("\n".join(body)), *quoted, *plain])


def _js_task(text: str, target: str, runner: str) -> str:
    """`grunt.registerTask('ship', [...])`, `exports.ship = …`, a function or an entry of that name: the commands that its
    code starts, and the tasks that it names."""
    from holdfast.analysis.shell.program_code import literal_texts, shell_of_code

    # `shell:deploy` is the entry `deploy` of a task that runs it.
    name = re.escape(target.rpartition(":")[2])
    begins = re.finditer(
        rf"\b(?:registerTask|registerMultiTask|task)\(\s*['\"`]{name}['\"`]|\b(?:exports\.|(?:async )?function\s+|const\s+|let\s+|export\s+const\s+){name}\b"
        rf"|(?m:^)\s*['\"]?{name}['\"]?\s*:",
        text,
    )
    bodies = [_balanced(text, match.end()) for match in begins]
    lines: list[str] = []
    for body in bodies:
        quoted = literal_texts(body)
        called = [
            inner
            for match in re.findall(r"\b(?:series|parallel)\(([^()]*)\)", body)
            for inner in re.findall(r"\w+", match)
        ]
        # `exports.default = build`.
        called += re.findall(r"^\s*=\s*(\w+)\s*;?\s*$", body)
        tasks = [one for one in (*quoted, *called) if re.fullmatch(r"[A-Za-z][\w:.-]*", one) and one != target]
        lines += [shell_of_code(body), *(one for one in quoted if " " in one.strip() and "\n" not in one)]
        lines += [f"{runner} {one}" for one in dict.fromkeys(tasks)]
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


def _editor_task(text: str, target: str) -> str:
    """A task of VS Code, with those it depends on. Its file may have comments and a comma behind the last entry."""
    plain = re.sub(r",(\s*[}\]])", r"\1", re.sub(r"(?m)^\s*//.*$", "", text))
    tasks = [one for one in _parse_json(plain).get("tasks") or () if isinstance(one, dict)]
    lines: list[str] = []
    for task in tasks:
        if target not in (task.get("label"), task.get("taskName"), task.get("script")):
            continue
        needs = task.get("dependsOn") or []
        lines += [f"{EDITOR_TASK} {shlex.quote(str(one))}" for one in (needs if isinstance(needs, list) else [needs])]
        lines += [f"{task['type']} run {task['script']}"] if task.get("type") == "npm" and task.get("script") else []
        command, arguments = task.get("command"), task.get("args") or []
        if isinstance(command, str):
            lines.append(" ".join([command, *(shlex.quote(str(one)) for one in arguments)]))
    return "\n".join(lines)


def _code_block(text: str, target: str) -> str:
    """`task :ship do … end` or `def ship(c): …`, as the commands that its code starts."""
    from holdfast.analysis.shell.program_code import shell_of_code

    name = re.escape(target.replace("-", "_"))
    begins = (
        re.search(rf"(?m)^(\s*)(?:task\s+[:\"']?{name}\b|(?:async\s+)?def\s+{name}\b).*$", text) if target else None
    )
    if begins is None:
        return ""
    rest = text[begins.start() :].splitlines()
    # The pattern also takes empty lines before the definition.
    indent = len(begins[1].strip("\n"))
    body = [rest[0]]
    for line in rest[1:]:
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        body.append(line)
    return shell_of_code("\n".join(body))


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
