"""What a person typed, told apart from what the agent or Holdfast itself put into a prompt."""

from holdfast.core.fence import VOICE, without_contexts
from holdfast.core.kinds.agent_events import PromptSubmitted


def prompt_text(data: PromptSubmitted) -> str:
    """Without the contexts that hooks put before it; empty when nothing else is in it."""
    return without_contexts(data.prompt).strip()


def is_synthetic(data: PromptSubmitted) -> bool:
    """Whether no person typed it."""
    return data.synthetic or prompt_text(data).startswith(VOICE.strip())
