"""The feature's section in every settings file."""

# What reaches beyond the project, or runs something, needs trust.

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from holdfast.core.kinds.project_events import AreaRules, ProjectRules
from holdfast.core.section import ALONE, Section

SAYS = "must be 1 to 64 letters, digits, `_`, `.` or `-`, and begin with none of the last two"
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$", extra={"says": SAYS})]
Glob = Annotated[str, Meta(min_length=1, max_length=300)]
Words = Annotated[str, Meta(max_length=300)]
Sentences = Annotated[tuple[Words, ...], Meta(max_length=10)]
Hours = Annotated[int, Meta(ge=1, le=10_000)]
Priority = Literal["P0", "P1", "P2", "P3"]
# A repository's own file may not set these without trust: they reach beyond the project.
GUARDED = Meta(extra={"guarded": True})


class Area(Section):
    """A named part of the project: what it is called, what proves a change in it, what waits for that."""

    paths: Annotated[tuple[Glob, ...], Meta(max_length=50), ALONE] = ()
    noun: Annotated[Words, Meta(description="What its files are called in tasks, e.g. agents.")] = "files"
    validate_: Annotated[
        tuple[Glob, ...],
        Meta(max_length=20, description="Commands (globs) that prove a change here; empty = any check."),
        ALONE,
    ] = msgspec.field(default=(), name="validate")
    done_when: Annotated[Sentences, ALONE] = ()
    blocks: Annotated[Sentences, ALONE] = ()
    capabilities: Annotated[Sentences, ALONE] = ()
    locks: Annotated[tuple[Name, ...], Meta(max_length=10), ALONE] = ()
    activity: Words = ""
    intent: Words = ""


class Tree(Section):
    """A folder to watch; with `source` it should have the same content as that one."""

    marks = {"guarded": True}

    path: Words
    source: Annotated[Words, Meta(description="The name of another tree, or a folder.")] = ""
    naming: Annotated[Literal["plain", "chezmoi"], Meta(description="How files of the source are called here.")] = (
        "plain"
    )
    ignore: Annotated[tuple[Glob, ...], Meta(max_length=50)] = (".git/**", "**/__pycache__/**")


class Check(Section):
    """The user's own gap rule: the gap is open while the command does not end as it should."""

    marks = {"command": True}

    command: Words
    exit_code: int = 0
    priority: Priority = "P2"
    description: Words = ""
    done_when: Sentences = ()
    blocks: Sentences = ()
    minutes: Annotated[int, Meta(ge=1, le=10_000)] = 10
    timeout: Annotated[int, Meta(ge=1, le=3600)] = 60
    every: Annotated[int, Meta(ge=10, le=86_400, description="Seconds between two runs.")] = 300


class Notion(Section):
    marks = {"guarded": True}

    database: Annotated[Words, Meta(description="The id of the database the tasks go to; empty = off.")] = ""
    token_file: Annotated[
        Words, Meta(description="Where the integration's token is; else NOTION_TOKEN of the daemon.")
    ] = ""
    base_url: Annotated[Words, Meta(description="Another address for tests and proxies.")] = "https://api.notion.com"
    retry_s: Annotated[int, Meta(ge=1, le=86_400)] = 300


class Tokens(Section):
    limit: Annotated[int, Meta(ge=0, description="Tokens that may be used in one period; 0 = no limit is known.")] = 0
    period: Literal["day", "week", "month"] = "month"


class ProjectSettings(Section):
    name: Annotated[Words, Meta(description="What this project is called; empty = found out.")] = ""
    phase: Annotated[Words, Meta(description="Shown as the current phase instead of what is found out.")] = ""
    files: Annotated[bool, Meta(description="Write SESSION_STATE.md and GLOBAL_STATE.md."), GUARDED] = True
    sessions_folder: Annotated[Words, GUARDED] = "~/.claude/sessions"
    global_file: Annotated[Words, GUARDED] = "~/.claude/GLOBAL_STATE.md"
    mapping_file: Annotated[Words, GUARDED] = "~/.claude/project_mapping.yml"
    refresh_s: Annotated[float, Meta(ge=0.1, le=3600, description="Seconds from a change to a look at it.")] = 1.0
    uncommitted_hours: Hours = 4
    unpushed_hours: Hours = 24
    edits: Annotated[
        Literal["warn", "deny", "off"], Meta(description="When another open session edited the same file.")
    ] = "warn"
    told_tasks: Annotated[int, Meta(ge=0, le=50, description="Open tasks told to an agent when a session starts.")] = 5
    edit_minutes: Annotated[int, Meta(ge=1, le=1440)] = 10
    junit: Annotated[
        tuple[Glob, ...], Meta(max_length=20, description="JUnit XML reports, relative to the project."), ALONE
    ] = ()
    areas: Annotated[dict[Name, Area], Meta(max_length=50)] = {}
    trees: Annotated[dict[Name, Tree], Meta(max_length=20)] = {}
    checks: Annotated[dict[Name, Check], Meta(max_length=50)] = {}
    gaps_off: Annotated[
        tuple[Words, ...], Meta(max_length=50, description="Gap types that are not looked for."), ALONE
    ] = ()
    priorities: Annotated[dict[Words, Priority], Meta(max_length=50, description="Gap type → its priority here.")] = {}
    tokens: Tokens = Tokens()
    notion: Notion = Notion()

    def rules(self) -> ProjectRules:
        """What reducers need of the settings. It goes into the log, so that a replay needs none."""
        areas = {name: msgspec.convert(area.plain(), AreaRules) for name, area in self.areas.items()}
        return ProjectRules(
            phase=self.phase,
            uncommitted_hours=self.uncommitted_hours,
            unpushed_hours=self.unpushed_hours,
            off=list(self.gaps_off),
            priorities=dict(self.priorities),
            areas=areas,
        )

    def proofs(self) -> dict[str, tuple[str, ...]]:
        if not self.areas:  # Most projects; asked at the end of every command.
            return {}
        return {name: area.validate_ for name, area in self.areas.items() if area.validate_}


DEFAULTS = ProjectSettings()
