"""For people's own hook scripts: the seeds' functions under their seeds' names, thin over the engine."""

from holdfast.api.reindex import *  # noqa: F403 - the same
from holdfast.api.session_state import *  # noqa: F403 - the same
from holdfast.api.uat_session import *  # noqa: F403 - the same

# After the star of uat_session, whose own it replaces: it serves both seeds.
from holdfast.api.validate import validate_session_state  # type: ignore[assignment]  # noqa: F401
