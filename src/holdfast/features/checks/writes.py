"""A guess at the files a command writes, from its words alone. The fingerprint of the content is what counts."""

from holdfast.core.shell.analysis import Ran, ShellCommand
from holdfast.core.shell.syntax import UNKNOWN

_LAST_OPERAND = frozenset(("cp", "mv", "install", "ln", "rsync"))
_ALL_OPERANDS = frozenset(("rm", "touch", "truncate", "tee", "unlink", "shred", "rmdir", "mkdir", "patch"))
_AFTER_FIRST = frozenset(("chmod", "chown"))
_IN_PLACE = frozenset(("sed", "perl", "gsed"))


def guess_writes(commands: list[ShellCommand]) -> list[str]:
    """Paths as written, without those whose name is not known; in order, each once."""
    found: dict[str, None] = {}
    for command in commands:
        if command.ran is Ran.NO:
            continue
        for path in (*command.invocation.writes, *_program_writes(command.words)):
            if UNKNOWN not in path and not path.startswith(("&", "/dev/")):
                found[path] = None
    return list(found)


def _program_writes(words: list[str]) -> list[str]:
    name = words[0].rpartition("/")[2]
    operands = [word for word in words[1:] if not word.startswith("-")]
    if name in _ALL_OPERANDS:
        return operands
    if name == "mv":
        return operands
    if name in _LAST_OPERAND:
        return operands[-1:]
    if name in _AFTER_FIRST:
        return operands[1:]
    if name in _IN_PLACE and any(word.startswith(("-i", "--in-place", "-pi")) for word in words[1:]):
        return operands[1:]
    if name == "dd":
        return [word[3:] for word in words if word.startswith("of=")]
    return []
