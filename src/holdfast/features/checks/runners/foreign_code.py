"""Code that runs in place of a tool, or before it: a module of its name in front of it, a file that node loads first."""

import os
import posixpath
from itertools import pairwise

from holdfast.core.shell.execute import ReadFile
from holdfast.core.shell.syntax import UNKNOWN
from holdfast.features.checks.runners.attribution import Candidate
from holdfast.features.checks.runners.recognise import Match

# Python imports these by itself before anything else.
_STARTUP_MODULES = ("sitecustomize", "usercustomize")
_NODE_LOADS = frozenset(("-r", "--require", "--import", "--loader", "--experimental-loader"))


def find_foreign_code(candidate: Candidate, root: str, read_file: ReadFile) -> str:
    """Why the tool's word does not count; empty when it does. `root`: the repository, empty when not known."""
    match, invocation = candidate.match, candidate.command.invocation
    if match is None:
        return ""
    if not match.runner.modules:
        return _loaded_by_node(invocation.environment.get("NODE_OPTIONS", ""), invocation.cwd, root)
    path = invocation.environment.get("PYTHONPATH", "")
    folders = [posixpath.join(invocation.cwd, one) for one in path.split(":") if one]
    if any(word.startswith("-m") for word in invocation.words[1:]):
        folders.insert(0, invocation.cwd)  # `python -m` looks there first.
    return next((why for folder in folders if (why := _shadowing_module(match, folder, root, read_file))), "")


def _shadowing_module(match: Match, folder: str, root: str, read_file: ReadFile) -> str:
    modules = match.runner.modules
    if _is_inside(folder, root):
        for name in (name for module in modules for name in (f"{module}.py", f"{module}/__init__.py")):
            if read_file(posixpath.join(folder, name)) is not None:
                return f"the project has a {name} of its own, which is run in place of the tool"
        return ""
    if UNKNOWN in folder:
        return ""
    # Nothing is read outside of the repository: that a file is there says enough.
    if not os.path.isdir(os.path.expanduser(folder)):
        return f"{folder} was searched for modules and is not there to be looked at"
    named = (*modules, *(f"_{module}" for module in modules), *_STARTUP_MODULES, *_plugins(match))
    for name in (name for module in named for name in (f"{module}.py", module)):
        if os.path.exists(os.path.join(os.path.expanduser(folder), name)):
            return f"{folder} holds a {name}, which is run in place of the tool"
    return ""


def _plugins(match: Match) -> list[str]:
    """`-p NAME`: code that may change how pytest ends."""
    return [value for flag, value in pairwise(match.arguments) if flag == "-p" and ":" not in value]


def _loaded_by_node(options: str, folder: str, root: str) -> str:
    words = options.replace("=", " ").split()
    for flag, value in pairwise(words):
        outside = value.startswith(("/", "~", ".")) and not _is_inside(posixpath.join(folder, value), root)
        if flag in _NODE_LOADS and outside and UNKNOWN not in value:
            return f"{value} is loaded before the tests and is no file of the project"
    return ""


def _is_inside(path: str, root: str) -> bool:
    """A relative path is one below the repository, as long as it does not lead out of it."""
    plain = posixpath.normpath(path)
    if not plain.startswith(("/", "~")):
        return not plain.startswith("..")
    return bool(root) and f"{plain}/".startswith(f"{root.rstrip('/')}/")
