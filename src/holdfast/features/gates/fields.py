"""Types of the settings fields that requirements and their kinds share."""

from typing import Annotated, Any

from msgspec import Meta

from holdfast.core.section import ALONE, Section

YEAR_S = 366 * 86_400
Glob = Annotated[str, Meta(min_length=1, max_length=300)]
Words = Annotated[str, Meta(max_length=200)]
Globs = Annotated[tuple[Glob, ...], Meta(max_length=120), ALONE]
Skills = Annotated[tuple[Words, ...], Meta(max_length=20), ALONE]
Seconds = Annotated[int, Meta(ge=0, le=YEAR_S)]
Spec = dict[str, Any]
"""One requirement as a settings file has it."""


class Part(Section):
    marks = {"whole": True, "lenient": True}
