"""What the text of a program (Python, JavaScript, awk, sed and the like) starts and writes, as far as literals in it show."""

# Text behind `-c` or `-e` is read generously: it was written for this one call. The file of a script is read strictly,
# by the calls that start programs, because its other texts are help, logs and data.

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import filterfalse, pairwise

from holdfast.analysis.shell.word_lists import word_list
from holdfast.core.data_files import load_data

CODE_FLAGS = ("-c", "-e", "-E", "--eval", "-eval", "-g", "-r", "-pe", "-ne", "-ie", "-pie", "-i.bak -pe")
MAX_CODE = 64_000
MAX_SHOWN = 60
_QUOTED_TEXT = r"""(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
LONGEST_COMMAND, LONGEST_READ, KEPT_OF_HEREDOC = 20_000, 400_000, 2_000


@cache
def _patterns() -> dict[str, str]:
    return load_data(__file__, "code_patterns", dict[str, str])


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(_patterns()[name].replace("QUOTED", _QUOTED_TEXT))


def is_interpreter(name: str) -> bool:
    return _pattern("interpreter").match(name) is not None


def script_file(name: str, words: list[str]) -> str:
    """The file that an interpreter is given to run."""
    if name in ("sed", "gsed", "awk", "gawk", "mawk"):
        return _behind_f(words)
    if not is_interpreter(name) or name in word_list("editors"):
        return ""
    rest = words[2:] if [name, *words[1:2]] in (["deno", "run"], ["bun", "run"]) else words[1:]
    if "-m" in rest[:-1] and name.startswith(("python", "pypy")):
        return rest[rest.index("-m") + 1].replace(".", "/") + ".py"
    if not set(CODE_FLAGS).isdisjoint(rest):
        return ""
    operand = next(filterfalse(re.compile("-").match, rest), "")
    return operand if re.search(r"[./]", operand) else ""


def _behind_f(words: list[str]) -> str:
    return next((after for word, after in pairwise(words) if re.match(r"^-[a-zA-Z]*f$", word)), "")


def shorten_command(command: str) -> tuple[str, bool]:
    """What is read of it, and whether that is all that could start something: the text of a long heredoc starts nothing."""
    if len(command) <= LONGEST_COMMAND:
        return command, True
    text = _pattern("long_heredoc").sub(
        lambda match: f"{match[1]}{match[4][:KEPT_OF_HEREDOC]}\n{match[3]}", command[:LONGEST_READ]
    )
    return text[:LONGEST_COMMAND], len(text) <= LONGEST_COMMAND and len(command) <= LONGEST_READ


def read_commands(code: str) -> tuple[list[str], bool]:
    """Commands inside of a text that was given to be run, and whether it may start some that cannot be read."""
    if not code or not _pattern("starts_programs").search(code):
        return [], False
    code = inline_constants(code)
    texts = [*literal_texts(code), *_pattern("words").findall(code), *_unquoted_commands(code)]
    hides = _pattern("hides").search(code) is not None
    texts += filter(None, map(_decode_literal, texts)) if hides else ()
    inner = [
        command for one in texts if _pattern("call").search(one) for command in literal_texts(inline_constants(one))
    ]
    commands = list(filter(_has_arguments, (*texts, *inner)))
    return commands[:MAX_SHOWN], hides or not commands


def _has_arguments(text: str) -> bool:
    """A text without a blank is mostly data."""
    return " " in text.strip()


def _unquoted_commands(code: str) -> list[str]:
    return [text.strip() for groups in _pattern("unquoted").findall(code) for text in groups if text]


def shell_of_code(code: str, language: str = "") -> str:
    """The script of an interpreter as shell text: the commands that it starts, and `: > FILE` for each file it writes.

    `language`: how its file's name ends.
    """
    if language in ("yml", "yaml"):
        return "\n".join(_pattern("yaml_command").findall(code[:MAX_CODE])[:MAX_SHOWN])
    if language == "sed":
        runs, written = sed_acts([code])
    else:
        code = inline_constants(_without_comments(code[:MAX_CODE]))
        runs = [text.replace("\n", " ; ") for text in _started_commands(code, language) if _has_arguments(text)]
        written = [*code_writes(code), *(awk_writes(code) if language == "awk" else ())]
    lines = [*runs, *(f": > {quote_word(name)}" for name in written if "\n" not in name)]
    return "\n".join(dict.fromkeys(lines[:MAX_SHOWN]))


def _started_commands(code: str, language: str) -> Iterator[str]:
    arguments = [_call_arguments(code, match.end()) for match in _pattern("call").finditer(code)]
    arguments += [first or quote_word(second) for first, second in _pattern("bare_call").findall(code)]
    for one in arguments[:MAX_SHOWN]:
        yield from literal_texts(one)
        yield from _pattern("words").findall(one)
    if language in ("tcl", "m4", "raku", "sql", "ipynb"):
        yield from _unquoted_commands(code)


def code_writes(code: str) -> list[str]:
    """Names in quotes that code opens for writing, moves or removes, as far as they stand there."""
    code = inline_constants(code)
    match = [
        found[1]
        for found in _pattern("opened").finditer(code)
        # `Path('x').write_text()` names the file first, `File.write('x')` the act first.
        if _pattern("writes").search(found[2])
        or _pattern("writes").search(code[found.start() : found.start(1)].lower())
    ]
    match += _pattern("written_path").findall(code)
    match += [name for names in _pattern("opened_by_mode").findall(code) for name in names if name]
    for in_brackets, bare in _pattern("moved").findall(code):
        match += _pattern("quoted").findall(in_brackets or bare)
    return match


def awk_writes(program: str) -> list[str]:
    return _pattern("printed").findall(inline_constants(program))


def sed_acts(scripts: Iterable[str]) -> tuple[list[str], list[str]]:
    """Commands that a sed script runs (`1e CMD`), and files that it writes (`w FILE`)."""
    text = "\n".join(scripts)
    replaced = [match[2] for match in _pattern("sed_replaces").finditer(text) if "e" in match[3]]
    return [*_pattern("sed_runs").findall(text), *replaced], _pattern("sed_writes").findall(text)


def inline_constants(code: str) -> str:
    """Names that stand for one text are replaced by it: `p = 'infra' + '/prod.tf'; open(p, 'w')`."""
    if "HOME" in code or "home" in code:
        code = _pattern("home_joined").sub(lambda found: f"{found[1]}~/", code)
    if "=" not in code:
        return code
    code = _pattern("joined_path").sub(lambda found: f'"{found[1]}/{found[2]}"', code) if "Path(" in code else code
    constants = {name: f'"{_joined_text(text)}"' for name, text in _pattern("constant").findall(code)[:MAX_SHOWN]}
    constants |= dict(_pattern("constant_list").findall(code)[:MAX_SHOWN])
    if not constants:
        return code
    # Texts in quotes are matched first and stay as they are; a name that is called or assigned to does too.
    names = re.compile(
        rf"{_QUOTED_TEXT}|(?<![\w.$'\"])\$?({'|'.join(map(re.escape, constants))})(?![\w'\"(])(?!\s*=(?!=))", re.S
    )
    return names.sub(lambda match: constants[match[1]] if match[1] else match[0], code)


def _joined_text(text: str) -> str:
    return "".join(part[1:-1] for part in re.findall(_QUOTED_TEXT, text))


def _without_comments(code: str) -> str:
    return re.sub(r"(?m)^\s*(?:#|//|--\s).*$", "", code)


def _call_arguments(code: str, at: int) -> str:
    """The text between the brackets of a call."""
    depth, end = 1, at
    # A bound for brackets that never close.
    while end < len(code) and depth and end - at < 600:
        depth += {"(": 1, ")": -1}.get(code[end], 0)
        end += 1
    return code[at : end - 1 if not depth else end]


def literal_texts(code: str) -> list[str]:
    """Texts in quotes, joined where the code joins them, and as one command where they are a list of words."""
    literals: list[str] = []
    row: list[str] = []
    end = None
    for match in _pattern("literal").finditer(code):
        text = match[2][1:-1].replace('\\"', '"').replace("\\'", "'")
        between = code[end : match.start()] if end is not None else None
        if between is not None and literals and _pattern("joined").match(between):
            literals[-1] += text
            row[-1:] = [literals[-1]]
        else:
            if between is not None and _pattern("listed").match(between):
                row.append(text)
            else:
                literals += _as_command(row)
                row = [text]
            literals.append(text)
        end = match.end()
    return [*literals, *_as_command(row)]


def _as_command(row: list[str]) -> list[str]:
    """`execvp('make', ['make', 'deploy'])` names the program twice."""
    words = row[1:] if len(row) > 2 and row[0] == row[1] else row
    return [" ".join(quote_word(word) for word in words)] if len(words) > 1 else []


def quote_word(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _decode_literal(text: str) -> str:
    if len(text) < 8 or not re.fullmatch(r"[A-Za-z0-9+/=]+", text):
        return ""
    try:
        return (bytes.fromhex(text) if re.fullmatch(r"[0-9a-f]+", text) else base64.b64decode(text)).decode()
    except (ValueError, binascii.Error):
        return ""
