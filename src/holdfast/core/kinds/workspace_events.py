"""Kinds of the feature `workspace`: what changed in a worktree, and what was restored."""

from holdfast.core.kinds.base import Payload, Record, event_kind


class FileChange(Record):
    path: str = ""
    """Relative to the worktree's root; `bytes:` begins a name that is not UTF-8, percent-encoded."""
    before: str = ""
    """The content before: empty if the file did not exist, `git:` and git's object id, an id of the content store, or `?`
    if the content was not kept."""
    after: str = ""
    was: int = 0
    """The file's mode before, as of lstat."""
    mode: int = 0
    at: int = 0
    lost: int = 0
    """Uncommitted lines that are in no file any more."""
    owner: str = ""
    """Who had written what was lost: a session, `?` if unknown, empty for a person."""


@event_kind("workspace.changed")
class WorkspaceChanged(Payload):
    """Files of a worktree changed: by a tool call, an undo, or somebody else."""

    root: str = ""
    repo: str = ""
    """The common git directory."""
    by: str = ""
    """`call`, `undo`, or `other`: a person, or a program that no call started."""
    call: str = ""
    of: str = ""
    """The key of the call's event, or the undo's own id."""
    since: str = ""
    """The key of the last call that had begun in any worktree."""
    tool: str = ""
    lane: str = ""
    files: list[FileChange] = []


@event_kind("workspace.restored")
class WorkspaceRestored(Payload):
    """Files were restored from earlier versions; the changes themselves are in `workspace.changed`."""

    root: str = ""
    id: str = ""
    what: str = ""
    """What was asked for, in words."""
    files: int = 0
    missing: list[str] = []
    """Files whose earlier content is not kept any more."""
