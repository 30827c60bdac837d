"""The section `sessions` of the settings."""

from typing import Annotated

from msgspec import Meta

from holdfast.core.section import Section

SESSION_INACTIVE_TIMEOUT_SECONDS = 3600
BATCH_ACTIVE_TIMEOUT_SECONDS = 300
BACKGROUND_PROCESSING_INTERVAL = 60


class SessionsSettings(Section):
    marks = {"guarded": True}

    session_inactive_timeout_seconds: Annotated[
        int, Meta(ge=1, description="A session whose process nobody knows ends after so long.")
    ] = SESSION_INACTIVE_TIMEOUT_SECONDS
    batch_active_timeout_seconds: Annotated[
        int, Meta(ge=1, description="A turn is closed after so long without a sign of life.")
    ] = BATCH_ACTIVE_TIMEOUT_SECONDS
    background_processing_interval: Annotated[
        int, Meta(ge=1, description="Seconds between two rounds of recovery.")
    ] = BACKGROUND_PROCESSING_INTERVAL
    idle_after_seconds: Annotated[
        int, Meta(ge=1, description="A session whose turn is over is shown as idle after it.")
    ] = 1800
    inject: Annotated[bool, Meta(description="Tell an agent at its start what else is going on in the project.")] = True
    transcripts: Annotated[
        bool, Meta(description="Read token use and exit codes from the transcripts the agents name.")
    ] = True


DEFAULTS = SessionsSettings()
