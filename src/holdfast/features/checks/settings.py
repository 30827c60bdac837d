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
            description="Time limit in milliseconds for fingerprinting the worktree; beyond it the content is unknown.",
            extra={"guarded": True},
        ),
    ] = LOOK_MS
    reports: Annotated[
        bool,
        Meta(description="Read JUnit XML and JSON reports of test runs whose command names one."),
    ] = True


DEFAULTS = ChecksSettings()
