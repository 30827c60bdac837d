"""The reader of an agent's own files, by the agent's name."""

from holdfast.analysis.transcripts import Importer, Transcripts
from holdfast.core.agent import known_agent

_NOTHING = Transcripts(importer=Importer("", "", lambda _location: (), lambda _path, _location: iter(())))


def transcripts_of(agent: str) -> Transcripts:
    known = known_agent(agent)
    found: Transcripts = known.transcripts() if known and known.transcripts else _NOTHING
    return found
