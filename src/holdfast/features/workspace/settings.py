"""The section `workspace` of the settings files."""

from typing import Annotated, Literal

from msgspec import Meta

from holdfast.core.section import Section


class WorkspaceSettings(Section):
    snapshots: Annotated[
        bool,
        Meta(
            description="Keep versions of changed files in the state folder, so that `holdfast undo` can restore them.",
            extra={"guarded": [False]},
        ),
    ] = True
    folders: Annotated[
        tuple[str, ...],
        Meta(
            description="Folders outside of git whose files are kept too, such as `~/notes`.", extra={"guarded": True}
        ),
    ] = ()
    discards: Annotated[
        Literal["tell", "ask", "refuse"],
        Meta(
            description="Before a command that would discard uncommitted lines of another session or a person: tell the"
            " agent whose they are, ask your person, or refuse.",
            extra={"guarded": True},
        ),
    ] = "tell"
    days: Annotated[int, Meta(ge=1, le=365, description="Days that a version is kept.")] = 7
    megabytes: Annotated[
        int, Meta(ge=10, le=1_000_000, description="Space for all versions; beyond it big and old ones are removed.")
    ] = 1_000
    max_file_mb: Annotated[
        int, Meta(ge=1, le=10_000, description="Files above this size are not kept; `holdfast status` names them.")
    ] = 50
    include: Annotated[
        tuple[str, ...],
        Meta(description="Names or globs of ignored files that are kept all the same, such as `.env`."),
    ] = ()


DEFAULTS = WorkspaceSettings()
