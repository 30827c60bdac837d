"""What counts as having validated a change: tests that passed, checkers that passed, and what the settings name."""

import fnmatch
from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.core.event import Event
from holdfast.core.ports import Doc
from holdfast.features.project.model import phrases
from holdfast.features.project.words import parts

CHECKERS = phrases(
    "ruff check, ruff, mypy, pyright, flake8, pylint, bandit, eslint, tsc, prettier, biome, shellcheck, yamllint, "
    "markdownlint, hadolint, actionlint, golangci-lint, go vet, go build, cargo check, cargo clippy, cargo build, "
    "npm run lint, npm run typecheck, npm run build, pnpm run lint, pnpm lint, yarn lint, make check, make lint, "
    "just lint, just check, pre-commit run, terraform validate, rubocop, phpstan, stylelint, clippy, lint-imports, "
    "holdfast state validate, chezmoi verify, black, isort"
)
ONLY_WITH = {"prettier": "--check", "black": "--check", "isort": "--check", "biome": "check"}
"""These change files unless told to look only."""

Area = Mapping[str, Any]


def validates(event: Event, patterns: Mapping[str, Iterable[str]]) -> list[str]:
    """What this successful command validates: `checks` for any checker, an area's name for its own commands."""
    if event.data.get("exit_code") != 0 or event.data.get("action") != "shell":
        return []
    command = str(event.data.get("command") or "")
    proven = [part for part in parts(command) if part.exits]
    found = ["checks"] if any(_is_checker(part) for part in proven) else []
    texts = [" ".join(part) for part in proven]
    for name, globs in patterns.items():
        if any(fnmatch.fnmatchcase(text, glob) for text in texts for glob in globs):
            found.append(name)
    return found


def _is_checker(part: tuple[str, ...]) -> bool:
    name = part.name  # type: ignore[attr-defined]
    program = name.split(" ")[0]
    known = name in CHECKERS or program in CHECKERS
    return known and ONLY_WITH.get(program, "") in (*part, "")


def area_of(path: str, areas: Mapping[str, Area]) -> str:
    """The first area that names the path; empty when none does."""
    for name, area in areas.items():
        if any(within(path, glob) for glob in area.get("paths") or ()):
            return name
    return ""


def within(path: str, glob: str) -> bool:
    """`dot_claude/agents` and `dot_claude/agents/**` both mean everything below it."""
    folder = glob.removesuffix("/**").removesuffix("/")
    return path == folder or path.startswith(f"{folder}/") or fnmatch.fnmatchcase(path, glob)


def is_validated(doc: Doc, file: Mapping[str, Any]) -> bool:
    """Whether something that proves this file was begun after its last change and passed."""
    areas = doc["rules"].get("areas") or {}
    area = area_of(str(file.get("path")), areas)
    proofs = doc["validations"]
    names = [area] if area and areas[area].get("validate") else list(proofs)
    last = max((proofs[name]["since"] for name in names if name in proofs), default=0)
    return bool(last) and last >= int(file.get("modified") or 0)


def unvalidated(doc: Doc) -> list[Mapping[str, Any]]:
    return [file for file in doc["git"].get("files") or () if not is_validated(doc, file)]
