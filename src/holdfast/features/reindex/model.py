"""Words and shapes of this room: kinds of events, documents, settings."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from holdfast.core.ports import Doc
from holdfast.search.settings import IndexSettings

SESSION, CHECKOUT = "reindex_session", "reindex_checkout"
"""Documents: one per session (its flag), one per project (its run, its last result, its newest session)."""

KINDS = {
    "reindex.initialized": "a session's first-prompt flag was set up (`source`, `shown`, `reset`, `previous`)",
    "reindex.marked": "a session's first-prompt flag was set by hand (`shown`)",
    "reindex.asked": "a person asked for the index (`rebuild`)",
    "reindex.decided": "whether to index now (`decision`, `reason`, `details`, `trigger`, `run`)",
    "reindex.finished": "a run over a checkout ended (`run`, `trigger`, `status`, `reason`, `files`, `chunks`, `ms`)",
    "reindex.suggested": "chunks that fit a prompt (`of`, `chunks`)",
}
LISTENS = frozenset(
    (*KINDS, "session.started", "session.ended", "prompt.submitted", "tool.finished", "turn.ended", "decision.made")
)

STATE_FILE = "logs/state/session-reindex-tracking.json"
FIRST_PROMPT, TURN_END, BRANCH, COMMAND, AGAIN = "first_prompt", "turn_end", "branch_switch", "command", "again"
RUN, SKIP = "run", "skip"
NOT_READY, COOLDOWN, CONCURRENT, SPAWNED = (
    "prerequisites_not_ready",
    "cooldown_active",
    "concurrent_reindex",
    "reindex_spawned",
)
COMPLETED, UNCHANGED, SUPERSEDED, SKIPPED, FAILED, TIMEOUT, KILLED = (
    "completed",
    "unchanged",
    "superseded",
    "skipped",
    "failed",
    "timeout",
    "killed",
)
GOOD = frozenset((COMPLETED, UNCHANGED))
SOURCE = "reindex"
"""Under this name the agent is told about chunks."""


def _inside(path: str) -> str:
    parts = path.split("/")
    if not path or path.startswith(("/", "~")) or ".." in parts or ".git" in parts or "\0" in path:
        raise ValueError("a path inside the project, e.g. logs/state/session-reindex-tracking.json")
    return path


Inside = Annotated[str, Field(max_length=500), AfterValidator(_inside)]
Glob = Annotated[str, Field(min_length=1, max_length=500)]


class Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = Field(True, description="Index in the background; false: only when asked.")
    cooldown_s: int = Field(300, ge=0, le=86_400, description="Seconds between runs that ends of turns ask for.")
    max_age_s: int = Field(3600, ge=0, description="An index older than this is refreshed at the end of a turn.")
    recheck_hours: int = Field(
        24, ge=0, le=8760, description="When a checkout that could not be indexed is tried again."
    )
    timeout_s: int = Field(1800, ge=10, le=86_400, description="A run that takes longer is ended.")
    state_file: Inside = Field(STATE_FILE, description="Where the seed's file is written, in the project.")
    state_file_version: Literal[1, 2] = Field(1, description="The shape of that file.")
    include: tuple[Glob, ...] = Field((), max_length=500, description="Only these files (globs); empty: all.")
    exclude: tuple[Glob, ...] = Field((), max_length=500, description="Files left out, besides those git ignores.")
    largest_kb: int = Field(1024, ge=1, le=16_384, description="Larger files are left out.")
    most_files: int = Field(100_000, ge=1, le=1_000_000, description="A checkout with more is not indexed.")
    # An address from a repository would send its code somewhere: only after trust.
    embedder: str = Field(
        "builtin", max_length=500, json_schema_extra={"guarded": ["builtin", "off"]},
        description="builtin, off, or the address of an OpenAI-compatible endpoint (http://localhost:11434/v1).",
    )  # fmt: skip
    model: str = Field("", max_length=200, description="The model that endpoint is asked for.")
    key_variable: str = Field(
        "",
        max_length=100,
        json_schema_extra={"guarded": True},
        description="Environment variable with the endpoint's key.",
    )
    context: bool = Field(False, description="Tell the agent up to three places in the code that fit its prompt.")
    context_score: float = Field(0.5, ge=0, le=1, description="How well a place must fit, at least.")

    def index(self) -> IndexSettings:
        return IndexSettings(
            include=self.include, exclude=self.exclude, largest_kb=self.largest_kb, most_files=self.most_files,
            embedder=self.embedder, model=self.model, key_variable=self.key_variable,
        )  # fmt: skip


DEFAULTS = Settings()


def new_session(session: str, project: str, at: int) -> Doc:
    return {
        "session_id": session,
        "project": project,
        "shown": False,
        "first_prompt_seq": 0,
        "first_prompt_at": 0,
        "started": False,
        "branch": "",
        "switched_seq": 0,
        "edits": 0,
        "commands": 0,
        "turn": {},
        "last_reindex": None,
        "offer": None,
        "status": "waiting",
        "at": at,
    }


def new_checkout(project: str, at: int) -> Doc:
    return {
        "project": project,
        "newest": None,
        "prompts": 0,
        "run": None,
        "again": False,
        "last": None,
        "good_at": 0,
        "started_at": 0,
        "refused": None,
        "decided": None,
        "status": "new",
        "at": at,
    }


def settings_or_default(settings: Any) -> Settings:
    return settings if isinstance(settings, Settings) else DEFAULTS
