"""Background lookups in git and on disk: branch sizes, skills that requirements name, what fits a project."""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from holdfast.core import git
from holdfast.core.agent import agent_folders
from holdfast.core.event import Event, own_event
from holdfast.core.feature import JobCall, State
from holdfast.core.globs import any_matches
from holdfast.core.job import READ_USAGE, Job
from holdfast.core.kinds import TOOL_ENDS
from holdfast.core.kinds.gates_events import GatesLooked, GatesMeasured
from holdfast.features.gates.events import action_of, branch_of, repo_of
from holdfast.features.gates.evidence import NO_FACTS
from holdfast.features.gates.kinds.branch_size import branch_size_settings
from holdfast.features.gates.kinds.evidence import evidence_of
from holdfast.features.gates.looking import only_looks
from holdfast.features.gates.rules.triggers import Rule
from holdfast.features.gates.state import FACTS_OF
from holdfast.paths import open_regular

if TYPE_CHECKING:
    from holdfast.features.gates.settings import GateSettings

replace = msgspec.structs.replace
MEASURE = "gates.measure"
# Events after which the size of a branch may have changed.
WHEN = frozenset({"session.started", "prompt.submitted", "tool.finished"})
CHANGING = frozenset({"edit", "shell"})
# The remote's own main branch comes first.
BASES = ("origin/HEAD", "origin/main", "origin/master", "main", "master")
MOST_FILES = 50_000
# Files that git does not know yet, and bytes of each; others are not counted.
MOST_NEW_FILES, LARGEST_NEW_FILE = 200, 1 << 20
# In milliseconds, where no rule says how old a measurement may be.
FRESH_MS = 60_000
TIMEOUT_S = 20.0


def wants_usage(event: Event, settings: "GateSettings") -> Iterable[Job]:
    """Reads the cost after each call, because a budget refuses the next one."""
    if event.kind not in TOOL_ENDS or not event.session or not any(rule.type == "budget" for rule in settings.rules):
        return ()
    return (Job(kind=READ_USAGE, dedupe=event.session, payload={"session": event.session}),)


def wants_measure(state: State, event: Event, settings: "GateSettings") -> Iterable[Job]:
    """After each call that may have changed lines; otherwise at most once in `cache_ttl` seconds."""
    if event.kind not in WHEN or not repo_of(event):
        return ()
    ended = event.kind == "tool.finished"
    if ended and not _may_change(event):
        return ()
    rules = [rule for rule in settings.rules if rule.kind.is_measured or rule.kind.is_proven]
    counts_lines = any(rule.kind.is_measured for rule in rules)
    if not rules or (not (ended and counts_lines) and _is_fresh(state, event, rules)):
        return ()
    where = {"project": event.project, "branch": branch_of(event), "repo": repo_of(event)}
    return (Job(kind=MEASURE, dedupe=f"{event.project}@{where['branch']}", payload=where),)


def _may_change(event: Event) -> bool:
    action = action_of(event)
    return action in CHANGING and not (action == "shell" and only_looks(event.data.get("command") or ""))


def _is_fresh(state: State, event: Event, rules: Sequence[Rule]) -> bool:
    size = (FACTS_OF.get(state, event.project) or NO_FACTS).sizes.get(branch_of(event))
    allowed = min(
        (branch_size_settings(rule.spec).cache_ttl * 1000 for rule in rules if rule.kind.is_measured), default=FRESH_MS
    )
    return size is not None and event.at - size.at < allowed


def measure_branch(call: JobCall) -> list[Event]:
    where = msgspec.convert(call.job.payload, GatesMeasured)
    settings = call.settings(where.project)
    # Taken before the look: what happens during it may not be in it.
    as_of = call.reader.head()
    measured = _Look(call, where.project).at(settings.rules if settings else (), where)
    return [] if measured is None else [own_event(replace(measured, as_of=as_of), call.now, project=where.project)]


class _Look:
    def __init__(self, call: JobCall, folder: str) -> None:
        self._call, self._folder = call, folder
        self._filters = self._own_filters()

    def at(self, rules: Sequence[Rule], where: GatesMeasured) -> GatesMeasured | None:
        """None if git does not answer."""
        names = self._run_git(git.list_files_argv(others=True))
        if names is None:
            return None
        covers = _covered_digests(rules, git.parse_names(names), self._folder)
        measured = (branch_size_settings(rule.spec) for rule in rules if rule.kind.is_measured)
        named = next((spec.base for spec in measured if spec.base), "")
        base = self._base((named,) if named else BASES)
        return replace(where, lines=self._lines(base) if base else 0, base=base, covers=covers)

    def _run_git(self, argv: Sequence[str]) -> bytes | None:
        ran = self._call.run(argv, cwd=self._folder, env=git.git_environment(os.environ), timeout=TIMEOUT_S)
        return None if ran.code else ran.out

    def _own_filters(self) -> list[str]:
        """Does not run the repository's own filter programs (P9)."""
        return git.own_filters(self._run_git(git.config_names()) or b"")

    def _base(self, candidates: Iterable[str]) -> str:
        # A branch named `--exec=…` would be an option.
        safe = (name for name in candidates if not name.startswith("-"))
        return next(
            (n for n in safe if self._run_git(git.git_argv("rev-parse", "--verify", "-q", f"{n}^{{commit}}"))), ""
        )

    def _lines(self, base: str) -> int:
        fork = (self._run_git(git.merge_base(base, "HEAD")) or b"").decode().strip()
        changed = self._run_git(git.diff_argv("--numstat", "-z", fork, "--", filters=self._filters)) if fork else None
        return _changed_line_count(changed or b"") + self._new_lines()

    def _new_lines(self) -> int:
        """Files git does not know yet are part of the change too."""
        listed = self._run_git(git.git_argv("ls-files", "-z", "--others", "--exclude-standard"))
        names = git.parse_names(listed or b"")
        return sum(_line_count(Path(self._folder, name)) for name in names[:MOST_NEW_FILES])


def _changed_line_count(out: bytes) -> int:
    """`added TAB removed TAB name NUL`; binary files have `-`."""
    fields = [line.split(b"\t", 2)[:2] for line in out.split(b"\0") if line.count(b"\t") >= 2]
    return sum(int(number) for pair in fields for number in pair if number.isdigit())


def _line_count(path: Path) -> int:
    # Of the link itself: a link may lead to a device, or out of the repository.
    try:
        file_stat = path.lstat()
        if not stat.S_ISREG(file_stat.st_mode) or file_stat.st_size > LARGEST_NEW_FILE:
            return 0
        content = path.read_bytes()
        return 0 if b"\0" in content else content.count(b"\n")
    except (OSError, ValueError):
        return 0


def _covered_digests(rules: Sequence[Rule], names: Sequence[str], folder: str) -> dict[str, str]:
    """Per requirement, what its files look like from outside: name, size, time of change."""
    asking = [rule for rule in rules if rule.kind.is_proven]
    # Looking at every file of a very large repository would take too long.
    if not asking or len(names) > MOST_FILES:
        return {}
    stamps = {path: stamp for name in names if (stamp := _file_stamp(path := f"{folder}/{name}"))}
    return {rule.name: _covered_digest(rule, stamps, folder) for rule in asking}


def _file_stamp(path: str) -> tuple[int, int] | None:
    try:
        file_stat = os.lstat(path)
    except (OSError, ValueError):
        return None
    return file_stat.st_size, file_stat.st_mtime_ns


def _covered_digest(rule: Rule, stamps: dict[str, tuple[int, int]], folder: str) -> str:
    globs = tuple(dict.fromkeys(glob for one in evidence_of(rule.spec) for glob in one.after_edit))
    whole = hashlib.sha256()
    for path in sorted(stamps):
        if any_matches(globs, path, folder):
            # Names that are not UTF-8 come from git as surrogates.
            whole.update(f"{path}\0{stamps[path]}\n".encode("utf-8", "surrogateescape"))
    return whole.hexdigest()[:24]


LOOK = "gates.look"
SHARED_FOLDER = ".agents"
PLUGINS = ("cache/*/*/*", "marketplaces/*/plugins/*", "marketplaces/*", "repos/*/*")
"""Where Claude Code keeps what its plugins bring."""
# Anything else could lead out of the folder.
_PLAIN = re.compile(r"^[\w.-]{1,100}$")


def wants_look(_state: State, event: Event, settings: "GateSettings") -> Iterable[Job]:
    if event.kind != "session.started" or not any(rule.skills for rule in settings.rules):
        return ()
    return (Job(kind=LOOK, dedupe=event.project, payload={"project": event.project}),)


def look_for_skills(call: JobCall) -> list[Event]:
    project = str(call.job.payload["project"])
    settings = call.settings(project)
    missing = missing_skills(settings, project) if settings else []
    facts = FACTS_OF.load(call.reader, project) or NO_FACTS
    return [] if missing == facts.missing else [own_event(GatesLooked(missing=missing), call.now, project=project)]


def missing_skills(settings: "GateSettings", project: str) -> list[str]:
    """Of requirements whose every skill is missing; one of several is enough."""
    missing: list[str] = []
    for rule in settings.rules:
        named = [*rule.spec.auto_resolve_skill, *rule.spec.satisfied_by_skill]
        # `plugin:skill` is not looked for: it is taken to exist.
        if named and not any(":" in skill or _skill_exists(skill.lstrip("/"), project) for skill in named):
            missing += named
    return sorted(set(missing))[:20]


def _skill_exists(skill: str, project: str) -> bool:
    return not _PLAIN.match(skill) or any(path.exists() for path in _skill_paths(skill, project))


def _skill_paths(skill: str, project: str) -> Iterator[Path]:
    for root in (Path(project), Path.home()):
        for folder in (*agent_folders(), SHARED_FOLDER):
            yield root / folder / "skills" / skill / "SKILL.md"
            yield root / folder / "commands" / f"{skill}.md"
            yield root / folder / "agents" / f"{skill}.md"
    for layout in PLUGINS:
        for plugin in (Path.home() / ".claude" / "plugins").glob(layout):
            yield plugin / "skills" / skill / "SKILL.md"
            yield plugin / "commands" / f"{skill}.md"
            yield plugin / "agents" / f"{skill}.md"


# ── what fits a project ──────────────────────────────────────────────────────────────────────────────────────────────

MAIN_BRANCHES = ("main", "master", "trunk", "develop")
LARGEST_PROJECT_FILE = 1 << 20


def find_main_branch(project: str) -> str:
    """The branch that everybody builds on, by git's own files; empty where that is not known."""
    git_dir = Path(project) / ".git"
    remote = (
        _file_text(git_dir / "refs" / "remotes" / "origin" / "HEAD").strip().removeprefix("ref: refs/remotes/origin/")
    )
    if remote:
        return remote
    packed = _file_text(git_dir / "packed-refs")
    candidates = (
        name for name in MAIN_BRANCHES if (git_dir / "refs" / "heads" / name).is_file() or _is_packed(packed, name)
    )
    return next(candidates, "")


def _is_packed(packed: str, branch: str) -> bool:
    return bool(re.search(rf" refs/heads/{re.escape(branch)}$", packed, re.MULTILINE))


def _file_text(path: Path) -> str:
    try:
        with open(path, "rb", opener=open_regular) as file:
            return file.read(LARGEST_PROJECT_FILE).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
