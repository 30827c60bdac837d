"""For people's own hook scripts: the seeds' functions under their seeds' names, thin over the engine."""

from holdfast.api.reindex import *  # noqa: F403 - the same
from holdfast.api.session_state import *  # noqa: F403 - the same
from holdfast.api.uat import *  # noqa: F403 - its __all__ is the seed's list

# After the star of uat, whose own it replaces: it serves both seeds.
from holdfast.api.validate import validate_session_state  # type: ignore[assignment]  # noqa: F401
