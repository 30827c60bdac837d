"""What the text of a program (Python, JavaScript, awk, sed and the like) starts and writes, as far as literals in it show.

Text behind `-c` or `-e` is read generously: it was written for this one call. The file of a script is read strictly, by
the calls that start programs, because its other texts are help, logs and data.
"""

import base64
import binascii
import re
from collections.abc import Iterable
from itertools import pairwise

from holdfast.analysis.shell.word_lists import word_list
from holdfast.core.lazy import lazy_pattern

INTERPRETER = lazy_pattern(
    r"^(?:python|pypy|perl|ruby|node|nodejs|deno|bun|php|lua|Rscript|tclsh|osascript|awk|gawk|mawk|m4|vim?|nvim|ex|ed|tsx|ts-node|julia|elixir|"
    r"groovy|scala|scala-cli|swipl|octave|raku|perl6|guile|emacs|racket|sbcl|clojure|clj|bb|runghc|R|kotlinc?|jshell|crystal|dc|sqlite3?)[\d.]*$"
)
CODE_FLAGS = ("-c", "-e", "-E", "--eval", "-eval", "-g", "-r", "-pe", "-ne", "-ie", "-pie", "-i.bak -pe")
MAX_CODE = 64_000
MAX_SHOWN = 60
# What a code has to contain to start a program in any of the languages; all else is not read further.
_STARTS_PROGRAMS = lazy_pattern(
    r"system|popen|Popen|subprocess|exec|spawn|child_process|qx|`|pty|runpy|importlib|__import__|eval|compile\(|fork|shell|sh\b|getline|\|\s*\"|process|cmd\b|\brun\b|^\s*[!.]"
)
# Calls that start a program, up to the bracket, in Python, JavaScript, PHP, Ruby and others; `$(` too.
_CALL = lazy_pattern(
    r"(?:\b(?:system|popen|Popen|check_call|check_output|getoutput|getstatusoutput|run|call|exec\w*|spawn\w*|posix_spawn\w*|"
    r"shell_exec|passthru|proc_open|capture[23e]*|sh|local|sudo|execa\w*|zx|execute|create_subprocess_\w+|Run[VW]?|Command|ProcessBuilder|commandLine)|\$)\s*\("
)
# Perl and Ruby without brackets: `system "..."`, `qx{...}`.
_BARE_CALL = lazy_pattern(
    r"\b(?:system|exec|sh|run|spawn|commandLine|cmd)\s+(?=[\"'])([^\n;]{1,400})|\bqx\s*[({/](.{1,400}?)[)}/]"
)
# Groups: a prefix letter as in Python, the text with its quotes.
_LITERAL = lazy_pattern(r"""([rbfu]?)(\"(?:[^"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`[^`]*`)""", re.S)
# `qw(a b)` of Perl, `%w[a b]` of Ruby.
_WORDS = lazy_pattern(r"\b(?:qw|%w)\s*[(\[{/]([^)\]}/]{1,400})[)\]}/]")
# Commands without quotes: Tcl's `exec git …`, m4's `syscmd(git …)`, Raku's `run <git …>`, and lines that begin with `!`
# (ed, dc, notebooks) or `.shell` (SQLite).
_UNQUOTED = lazy_pattern(
    r"(?:^|[\[;\n{])\s*exec\s+(?:-\w+\s+)*([^\]\n;(\"'`]{3,400})|\be?syscmd\(\s*[`\[]?([^)\n]{3,400}?)['\]]?\)"
    r"|\b(?:run|shell)\s*<([^>\n]{3,400})>|^\s*!\s*([^\n]{3,400})|^\s*\.(?:shell|system)\s+([^\n]{3,400})",
    re.M,
)
# Tasks of a playbook: `shell: make …`.
_YAML_COMMAND = lazy_pattern(
    r"""(?m)^\s*(?:-\s*)?(?:ansible\.builtin\.)?(?:shell|command|cmd|raw|script):\s*["']?([^\n"'|>]{3,400})"""
)
_JOINED = lazy_pattern(r"^\s*[+.]\s*$|^\s*$")
# Also `"git", c("commit", …)` of R.
_LISTED = lazy_pattern(r"^\s*,\s*(?:c|list|array|vec!)?\s*[\[(]?\s*$")
# Signs that a text is put together when the code runs, so that it cannot be read here.
_HIDES = lazy_pattern(r"decode|chr\(|fromhex|fromCharCode|atob|unhexlify|rot13|pack\(|\.reverse|\[::-1\]")
_QUOTED_TEXT = r"""(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
# `name = "text"`, also joined from several texts or wrapped in Path(...): group 1 the name, 2 the texts.
_CONSTANT = lazy_pattern(
    rf"""(?:^|[;\n{{(]|\bBEGIN\s*\{{)\s*(?:const\s+|let\s+|var\s+|my\s+)?\$?([A-Za-z_]\w*)\s*=\s*(?:(?:[\w.]*expanduser|(?:pathlib\.)?Path)\(\s*)?"""
    rf"""({_QUOTED_TEXT}(?:\s*[+.]\s*{_QUOTED_TEXT})*)\s*\)?\s*(?=[;\n}}]|$)"""
)
# `Path("a") / "b"`.
_JOINED_PATH = lazy_pattern(r"""(?:pathlib\.)?Path\(\s*["']([^"'\n]+)["']\s*\)\s*/\s*["']([^"'\n]+)["']""")
_CONSTANT_LIST = lazy_pattern(
    rf"(?m)^\s*(?:const\s+|let\s+|var\s+)?([A-Za-z_]\w*)\s*=\s*(\[\s*{_QUOTED_TEXT}(?:\s*,\s*{_QUOTED_TEXT})*\s*,?\s*\])\s*;?$"
)
# Opens or writes a file named in quotes: group 1 the name, 2 what follows it (a mode, a method).
_OPENED = lazy_pattern(
    r"""(?:open|fopen|File\.(?:write|open|new)|writeFile(?:Sync)?|appendFile(?:Sync)?|createWriteStream|truncate(?:Sync)?|file_put_contents|Path|PosixPath|spurt|writeTextFile(?:Sync)?)"""
    r"""\s*\(?\s*(?:[\w.]*expanduser\(|[\w.]*Path\()?\s*(?:[<>+]*\s*)["']([^"'\n]{1,300})["']([^;\n]{0,80})"""
)
_WRITES = lazy_pattern(
    r"""["'][rbt]*[wax+][bt+]*["']|write|append|truncate|put_contents|unlink|touch|rename|replace\(|mkdir|chmod|>"""
)
# A path that was put into a name of its own: `p = Path("a") / "b"; p.write_text(…)`.
_WRITTEN_PATH = lazy_pattern(
    r"""["']([^"'\n]{1,300})["']\s*\.(?:write_text|write_bytes|unlink|touch|rename|replace_with|open\(\s*["'][wax])"""
)
# Perl's `open F, ">", "name"` and Tcl's `open name w`.
_OPENED_BY_MODE = lazy_pattern(
    r"""\bopen\b[^;\n"']{0,40}["']\+?>{1,2}[^"'\n]{0,20}["']\s*,\s*["']([^"'\n]{1,300})["']|\[open\s+["{]?([^\s"'\]{}]{1,300})["}]?\s+[wa]\+?\]"""
)
# Removes, moves or copies: group 1 its arguments.
_MOVED = lazy_pattern(
    r"""(?:os\.(?:remove|unlink|rename|replace|truncate|chmod|makedirs|mkdir|symlink|link)|shutil\.\w+|(?:unlink|rename|rm|cp|copyFile|mkdir|chmod)(?:Sync)?|FileUtils\.\w+)\s*(?:\(([^)\n]{1,300})\)|(?=["'])([^;\n]{1,300}))"""
)
_QUOTED = lazy_pattern(r"""["']([^"'\n]{1,300})["']""")
# awk: `print > "file"`.
_PRINTED = lazy_pattern(r""">>?\s*\(?\s*"([^"\n]{1,300})\"""")
# sed's command `e` behind an address; the next pattern is for `w`.
_SED_RUNS = lazy_pattern(r"(?:^|[;\n{}/$]|\d)\s*e\s+([^\n}]{2,400})")
_SED_WRITES = lazy_pattern(r"(?:^|[;\n{}/$gp]|\d)\s*w\s+([^\s;}]{1,300})")
# `s/…/COMMAND/e`: what stands there then is run.
_SED_REPLACES = lazy_pattern(r"(?:^|[;\n{}]|\d)\s*s([/|#,!@])(?:\\.|(?!\1).)*\1((?:\\.|(?!\1).)*)\1([a-zA-Z0-9]*)")
LONGEST_COMMAND, LONGEST_READ, KEPT_OF_HEREDOC = 20_000, 400_000, 2_000
# `<<'EOF'` with its text: only where the mark is quoted, since otherwise `$(…)` in the text is run.
_LONG_HEREDOC = lazy_pattern(r"(<<-?[ \t]*(['\"])(\w+)\2[^\n]*\n)(.{2000,}?)\n[ \t]*\3(?![^\n])", re.S)


def script_file(name: str, words: list[str]) -> str:
    """The file that an interpreter is given to run."""
    if name in ("sed", "gsed", "awk", "gawk", "mawk"):
        return next((after for word, after in pairwise(words) if re.match(r"^-[a-zA-Z]*f$", word)), "")
    if not INTERPRETER.match(name) or name in word_list("editors"):
        return ""
    rest = [word for word in words[1:] if word != "run" or name not in ("deno", "bun")]
    if "-m" in rest[:-1] and name.startswith(("python", "pypy")):
        return rest[rest.index("-m") + 1].replace(".", "/") + ".py"
    if any(word in CODE_FLAGS for word in rest):
        return ""
    script = next((word for word in rest if not word.startswith("-")), "")
    return script if "." in script or "/" in script else ""


def shorten_command(command: str) -> tuple[str, bool]:
    """What is read of it, and whether that is all that could start something: the text of a long heredoc starts nothing."""
    if len(command) <= LONGEST_COMMAND:
        return command, True
    text = _LONG_HEREDOC.sub(
        lambda match: f"{match[1]}{match[4][:KEPT_OF_HEREDOC]}\n{match[3]}", command[:LONGEST_READ]
    )
    return text[:LONGEST_COMMAND], len(text) <= LONGEST_COMMAND and len(command) <= LONGEST_READ


def read_commands(code: str) -> tuple[list[str], bool]:
    """Commands inside of a text that was given to be run, and whether it may start some that cannot be read."""
    if not code or not _STARTS_PROGRAMS.search(code):
        return [], False
    code = inline_constants(code)
    texts = [*literal_texts(code), *_WORDS.findall(code), *_unquoted_commands(code)]
    if _HIDES.search(code):
        texts += [text for one in texts if (text := _decode_literal(one))]
    inner = [command for one in texts if _CALL.search(one) for command in literal_texts(inline_constants(one))]
    # A text without a blank is mostly data; a command has arguments.
    commands = [text for text in (*texts, *inner) if " " in text.strip()]
    return commands[:MAX_SHOWN], not commands or bool(_HIDES.search(code))


def _unquoted_commands(code: str) -> list[str]:
    return [text.strip() for groups in _UNQUOTED.findall(code) for text in groups if text]


def shell_of_code(code: str, language: str = "") -> str:
    """The script of an interpreter as shell text: the commands that it starts, and `: > FILE` for each file it writes.

    `language`: how its file's name ends.
    """
    if language == "sed":
        runs, written = sed_acts([code])
        return "\n".join([*runs, *(f": > {quote_word(name)}" for name in written)])
    if language in ("yml", "yaml"):
        return "\n".join(_YAML_COMMAND.findall(code[:MAX_CODE])[:MAX_SHOWN])
    code = inline_constants(_without_comments(code[:MAX_CODE]))
    arguments = [_call_arguments(code, match.end()) for match in _CALL.finditer(code)]
    arguments += [first or quote_word(second) for first, second in _BARE_CALL.findall(code)]
    commands = [text for one in arguments[:MAX_SHOWN] for text in [*literal_texts(one), *_WORDS.findall(one)]]
    commands += _unquoted_commands(code) if language in ("tcl", "m4", "raku", "sql", "ipynb") else []
    lines = [text.replace("\n", " ; ") for text in commands if " " in text.strip()]
    written = [*code_writes(code), *(awk_writes(code) if language == "awk" else ())]
    lines += [f": > {quote_word(name)}" for name in written if "\n" not in name]
    return "\n".join(dict.fromkeys(lines[:MAX_SHOWN]))


def code_writes(code: str) -> list[str]:
    """Names in quotes that code opens for writing, moves or removes, as far as they stand there."""
    code = inline_constants(code)
    match = [
        found[1]
        for found in _OPENED.finditer(code)
        # `Path('x').write_text()` names the file first, `File.write('x')` the act first.
        if _WRITES.search(found[2]) or _WRITES.search(code[found.start() : found.start(1)].lower())
    ]
    match += _WRITTEN_PATH.findall(code)
    match += [name for names in _OPENED_BY_MODE.findall(code) for name in names if name]
    for in_brackets, bare in _MOVED.findall(code):
        match += _QUOTED.findall(in_brackets or bare)
    return match


def awk_writes(program: str) -> list[str]:
    return _PRINTED.findall(inline_constants(program))


def sed_acts(scripts: Iterable[str]) -> tuple[list[str], list[str]]:
    """Commands that a sed script runs (`1e CMD`), and files that it writes (`w FILE`)."""
    text = "\n".join(scripts)
    replaced = [match[2] for match in _SED_REPLACES.finditer(text) if "e" in match[3]]
    return [*_SED_RUNS.findall(text), *replaced], _SED_WRITES.findall(text)


def inline_constants(code: str) -> str:
    """Names that stand for one text are replaced by it: `p = 'infra' + '/prod.tf'; open(p, 'w')`."""
    if "HOME" in code or "home" in code:
        code = _HOME_JOINED.sub(lambda found: f"{found[1]}~/", code)
    if "=" not in code:
        return code
    code = _JOINED_PATH.sub(lambda found: f'"{found[1]}/{found[2]}"', code) if "Path(" in code else code
    constants = {name: f'"{_joined_text(text)}"' for name, text in _CONSTANT.findall(code)[:MAX_SHOWN]}
    constants |= dict(_CONSTANT_LIST.findall(code)[:MAX_SHOWN])
    if not constants:
        return code
    # Texts in quotes are matched first and stay as they are; a name that is called or assigned to does too.
    names = re.compile(
        rf"{_QUOTED_TEXT}|(?<![\w.$'\"])\$?({'|'.join(map(re.escape, constants))})(?![\w'\"(])(?!\s*=(?!=))", re.S
    )
    return names.sub(lambda match: constants[match[1]] if match[1] else match[0], code)


# The home folder as code asks for it, joined with a text in quotes.
_HOME_JOINED = lazy_pattern(
    r"""(?:require\(["'](?:node:)?os["']\)\.homedir\(\)|\bos\.homedir\(\)|(?:pathlib\.)?Path\.home\(\)|os\.environ(?:\.get\(|\[)["']HOME["'][\])]"""
    r"""|os\.getenv\(["']HOME["']\)|process\.env\.HOME|ENV\[["']HOME["']\]|\$ENV\{HOME\}|Dir\.home|getenv\(["']HOME["']\))\s*[+./,]\s*(["'])/?"""
)


def _joined_text(text: str) -> str:
    return "".join(part[1:-1] for part in re.findall(_QUOTED_TEXT, text))


def _without_comments(code: str) -> str:
    return re.sub(r"(?m)^\s*(?:#|//|--\s).*$", "", code)


def _call_arguments(code: str, at: int) -> str:
    """What stands between the brackets of a call."""
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
    for match in _LITERAL.finditer(code):
        text = match[2][1:-1].replace('\\"', '"').replace("\\'", "'")
        between = code[end : match.start()] if end is not None else None
        if between is not None and literals and _JOINED.match(between):
            literals[-1] += text
            row[-1:] = [literals[-1]]
        else:
            if between is not None and _LISTED.match(between):
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
