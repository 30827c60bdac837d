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
        int, Meta(ge=1, description="Seconds without activity after which a session without a known process ends.")
    ] = SESSION_INACTIVE_TIMEOUT_SECONDS
    batch_active_timeout_seconds: Annotated[
        int, Meta(ge=1, description="Seconds without a sign of life after which a turn is closed.")
    ] = BATCH_ACTIVE_TIMEOUT_SECONDS
    background_processing_interval: Annotated[
        int, Meta(ge=1, description="Seconds between two rounds of recovery.")
    ] = BACKGROUND_PROCESSING_INTERVAL
    idle_after_seconds: Annotated[
        int, Meta(ge=1, description="Seconds after the end of a turn at which its session is shown as idle.")
    ] = 1800
    inject: Annotated[
        bool, Meta(description="Give agents context about other sessions of the project at their start.")
    ] = True
    transcripts: Annotated[bool, Meta(description="Read token use and exit codes from the agents' transcripts.")] = True


DEFAULTS = SessionsSettings()
