"""Our own words that an agent hands back: contexts put before a prompt, and the reason of a refused stop as a prompt.

They are told apart from what a person typed, so that they never become a prompt, a title, a summary or a memory.
"""

from typing import Any

from holdfast.agents.answering import reason_of
from holdfast.agents.reading import Data
from holdfast.core.agent import Payload
from holdfast.core.decision import Decision
from holdfast.core.text import VOICE, without_contexts


def spoken_reason(decision: Decision) -> str:
    return VOICE + reason_of(decision)


def take_out(data: Data, _payload: Payload) -> None:
    """For a prompt: contexts are cut off, and what is left without a person's words is nobody's."""
    prompt: Any = data.get("prompt")
    if isinstance(prompt, str):
        data["prompt"] = prompt = without_contexts(prompt)
    if not prompt or prompt.startswith(VOICE):
        data["synthetic"] = True
