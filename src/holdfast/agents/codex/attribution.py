"""Tells the person's words in a prompt from those that Codex adds."""

_OWN_WORDS = (
    "<environment_context>", "<user_instructions>", "<INSTRUCTIONS>", "# AGENTS.md instructions", "<turn_aborted>",
    "<subagent_notification>", "<skill>",
)  # fmt: skip
_REQUEST = "## My request for Codex:"
"""Before the person's words, where an editor or a browser adds what is open there."""


def typed_words(text: str) -> str:
    """The person's words of a prompt; empty where there are none."""
    text = text.strip()
    if text.startswith(_OWN_WORDS):
        return ""
    return text.partition(_REQUEST)[2].strip() if text.startswith("# ") and _REQUEST in text else text
