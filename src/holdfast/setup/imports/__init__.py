"""Converts transcripts of agents and files of older tools to events; sources are only read."""

from holdfast.agents import AGENTS
from holdfast.agents.pi.history import IMPORTER as PI
from holdfast.analysis.transcripts import Importer
from holdfast.setup.imports import earlier_state

IMPORTERS: dict[str, Importer] = {
    importer.name: importer
    for importer in (
        *(agent.transcripts().importer for agent in AGENTS.values() if agent.transcripts),
        PI,
        *earlier_state.IMPORTERS,
    )
}
