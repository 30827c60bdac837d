"""The section `cost` of the settings."""

from typing import Annotated

from msgspec import Meta

from holdfast.core.section import Section


class CostSettings(Section):
    budget: Annotated[
        int,
        Meta(ge=0, description="Dollars you mean to spend in a month; a line in the chart of the page Cost. 0: none."),
    ] = 0
