"""Files of the repository that say what an entry point runs. Only small regular files inside of it are read."""

import json
import os
import re

from holdfast.core.shell.execute import ReadFile

MAX_BYTES = 64_000
_MAKE_VARIABLE = re.compile(r"^([A-Za-z_]\w*)\s*[:?]?=\s*(.*)$", re.MULTILINE)
_REFERENCE = re.compile(r"\$[({](\w+)[)}]|\{\{\s*(\w+)\s*\}\}")
_INI_COMMANDS = re.compile(r"^commands\s*=\s*((?:.*\n)(?:[ \t]+.*\n?)*)", re.MULTILINE)


class RepositoryFiles:
    """Reads text files below one folder and nowhere else."""

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)

    def read(self, path: str) -> str | None:
        full = os.path.realpath(os.path.join(self.root, path))
        if not full.startswith(f"{self.root}{os.sep}"):
            return None
        try:
            with open(full, "rb") as file:
                if not os.path.isfile(full):
                    return None
                data = file.read(MAX_BYTES + 1)
        except (OSError, ValueError):
            return None
        return None if len(data) > MAX_BYTES or b"\0" in data else data.decode("utf-8", "replace")


def read_recipe(name: str, target: str, folder: str, read: ReadFile) -> str:
    """The shell text that an entry point runs; empty when it cannot be found."""
    if name in ("make", "gmake"):
        return _indented(_first(folder, ("GNUmakefile", "makefile", "Makefile"), read), target)
    if name == "just":
        return _indented(_first(folder, ("justfile", "Justfile", ".justfile"), read), target)
    if name in ("npm", "pnpm", "yarn", "bun"):
        return _package_script(_first(folder, ("package.json",), read), target)
    if name == "tox":
        match = _INI_COMMANDS.search(_first(folder, ("tox.ini",), read))
        return match[1] if match else ""
    if "/" in target or target.endswith((".sh", ".bash", ".py")):
        return read(_under(folder, target)) or ""
    return ""


def _under(folder: str, name: str) -> str:
    return name if folder == "." else f"{folder}/{name}"


def _first(folder: str, names: tuple[str, ...], read: ReadFile) -> str:
    return next((text for name in names if (text := read(_under(folder, name)))), "")


def _indented(text: str, target: str) -> str:
    """The indented lines below `target:` with the variables of the file put in."""
    wanted = target.split()[0] if target else ""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if line[:1] in (" ", "\t"):
            lines += [line.strip().lstrip("@-+")] if inside else []
        elif line.strip() and not line.startswith("#"):
            inside = bool(wanted) and bool(re.match(rf"{re.escape(wanted)}\b[^=]*:(?!=)", line))
    variables = dict(_MAKE_VARIABLE.findall(text))
    return _REFERENCE.sub(lambda match: variables.get(match[1] or match[2], match[0]), "\n".join(lines))


def _package_script(text: str, target: str) -> str:
    try:
        scripts = json.loads(text or "{}").get("scripts", {})
        found = [
            scripts[name] for name in (f"pre{target}", target, f"post{target}") if isinstance(scripts.get(name), str)
        ]
    except (ValueError, AttributeError, RecursionError):
        return ""
    return " && ".join(found)
