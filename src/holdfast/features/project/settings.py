"""The room's section in every settings file. What reaches beyond the project, or runs something, needs trust."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$")]
Glob = Annotated[str, Field(min_length=1, max_length=300)]
Words = Annotated[str, Field(max_length=300)]
Priority = Literal["P0", "P1", "P2", "P3"]
GUARDED: Any = {"guarded": True}


def a_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Area(Part):
    """A named part of the project: what it is called, what proves a change in it, what waits for that."""

    paths: tuple[Glob, ...] = Field((), max_length=50)
    noun: Words = Field("files", description="What its files are called in tasks, e.g. agents.")
    validate_: tuple[Glob, ...] = Field(
        (), alias="validate", max_length=20, description="Commands (globs) that prove a change here; empty = any check."
    )
    done_when: tuple[Words, ...] = Field((), max_length=10)
    blocks: tuple[Words, ...] = Field((), max_length=10)
    capabilities: tuple[Words, ...] = Field((), max_length=10)
    locks: tuple[Name, ...] = Field((), max_length=10)
    activity: Words = ""
    intent: Words = ""

    _listed = field_validator(
        "paths", "validate_", "done_when", "blocks", "capabilities", "locks", mode="before"
    )(a_list)  # fmt: skip


class Tree(Part):
    """A folder to watch; with `source` it should have the same content as that one."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra=GUARDED)

    path: Words
    source: Words = Field("", description="The name of another tree, or a folder.")
    naming: Literal["plain", "chezmoi"] = Field("plain", description="How files of the source are called here.")
    ignore: tuple[Glob, ...] = Field((".git/**", "**/__pycache__/**"), max_length=50)


class Check(Part):
    """A gap rule of one's own: the gap is open while the command does not end as it should."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra={"command": True})

    command: Words
    exit_code: int = 0
    priority: Priority = "P2"
    description: Words = ""
    done_when: tuple[Words, ...] = Field((), max_length=10)
    blocks: tuple[Words, ...] = Field((), max_length=10)
    minutes: int = Field(10, ge=1, le=10_000)
    timeout: int = Field(60, ge=1, le=3600)
    every: int = Field(300, ge=10, le=86_400, description="Seconds between two runs.")


class Notion(Part):
    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra=GUARDED)

    database: Words = Field("", description="The id of the database the tasks go to; empty = off.")
    token_file: Words = Field("", description="Where the integration's token lies; else NOTION_TOKEN of the daemon.")
    base_url: Words = Field("https://api.notion.com", description="Another address for tests and proxies.")
    retry_s: int = Field(300, ge=1, le=86_400)


class Tokens(Part):
    limit: int = Field(0, ge=0, description="Tokens that may be used in one period; 0 = no limit is known.")
    period: Literal["day", "week", "month"] = "month"


class ProjectSettings(Part):
    name: Words = Field("", description="What this project is called; empty = found out.")
    phase: Words = Field("", description="Shown as the current phase instead of what is found out.")
    files: bool = Field(True, description="Write SESSION_STATE.md and GLOBAL_STATE.md.", json_schema_extra=GUARDED)
    sessions_folder: Words = Field("~/.claude/sessions", json_schema_extra=GUARDED)
    global_file: Words = Field("~/.claude/GLOBAL_STATE.md", json_schema_extra=GUARDED)
    mapping_file: Words = Field("~/.claude/project_mapping.yml", json_schema_extra=GUARDED)
    refresh_s: float = Field(3.0, ge=0.1, le=3600, description="Seconds from a change to a look at it.")
    uncommitted_hours: int = Field(4, ge=1, le=10_000)
    unpushed_hours: int = Field(24, ge=1, le=10_000)
    edits: Literal["warn", "deny", "off"] = Field("warn", description="When another open session edited the same file.")
    told_tasks: int = Field(5, ge=0, le=50, description="Open tasks told to an agent when a session starts.")
    edit_minutes: int = Field(10, ge=1, le=1440)
    junit: tuple[Glob, ...] = Field((), max_length=20, description="JUnit XML reports, relative to the project.")
    areas: dict[Name, Area] = Field({}, max_length=50)
    trees: dict[Name, Tree] = Field({}, max_length=20)
    checks: dict[Name, Check] = Field({}, max_length=50)
    gaps_off: tuple[Words, ...] = Field((), max_length=50, description="Gap types that are not looked for.")
    priorities: dict[Words, Priority] = Field({}, max_length=50, description="Gap type → its priority here.")
    tokens: Tokens = Tokens()
    notion: Notion = Notion()

    _listed = field_validator("junit", "gaps_off", mode="before")(a_list)

    def rules(self) -> dict[str, Any]:
        """What reducers need of the settings. It goes into the log, so that a replay needs none."""
        areas = {name: _said(area) for name, area in self.areas.items()}
        found = {
            "phase": self.phase,
            "uncommitted_hours": self.uncommitted_hours,
            "unpushed_hours": self.unpushed_hours,
            "off": list(self.gaps_off),
            "priorities": dict(self.priorities),
            "areas": areas,
        }
        return {name: value for name, value in found.items() if value}

    def proofs(self) -> dict[str, tuple[str, ...]]:
        return {name: area.validate_ for name, area in self.areas.items() if area.validate_}


def _said(area: Area) -> dict[str, Any]:
    plain = area.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return {name: value for name, value in plain.items() if value}


DEFAULTS = ProjectSettings()
