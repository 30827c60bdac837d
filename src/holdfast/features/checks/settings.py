"""The section `checks` of the settings files."""

from typing import Annotated

from msgspec import Meta

from holdfast.core.section import Section

LOOK_MS, MAX_LOOK_MS = 150, 10_000


class ChecksSettings(Section):
    look_ms: Annotated[
        int,
        Meta(
            ge=10,
            le=MAX_LOOK_MS,
            description="Milliseconds that a look at the content may take; then it is unknown.",
            extra={"guarded": True},
        ),
    ] = LOOK_MS
    reports: Annotated[
        bool, Meta(description="Read the JUnit XML and JSON reports that a test run wrote, where its command names one.")
    ] = True


DEFAULTS = ChecksSettings()
