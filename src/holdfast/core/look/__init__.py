"""The style sheets that everything Holdfast draws shares: tokens, and the look of a standalone document."""

from importlib import resources

TOKENS, DOCUMENT = "tokens.css", "document.css"


def style_sheet(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def document_style() -> str:
    """For a file or page of its own, without a dashboard around it."""
    return style_sheet(TOKENS) + style_sheet(DOCUMENT)
