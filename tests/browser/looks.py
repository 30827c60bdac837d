"""What can be said about any page by looking at it as the browser shows it."""

from pathlib import Path
from typing import Any

NAMED = frozenset(
    "button link textbox searchbox combobox listbox slider spinbutton checkbox radio switch tab menuitem option image "
    "img DisclosureTriangle disclosuretriangle".split()
)

SEEN = Path(__file__).parent / "seen"


def ask(page: Any, what: str) -> Any:
    """One of the questions in seen/*.js."""
    return page.evaluate((SEEN / f"{what}.js").read_text())


def weak_contrast(page: Any) -> list[str]:
    """Text below WCAG AA (4.5, large text 3) against what lies behind it."""
    return ask(page, "contrast")


def too_wide(page: Any) -> list[str]:
    """What sticks out to the right, when the page scrolls sideways."""
    return ask(page, "too_wide")


def nameless(page: Any) -> list[str]:
    """Controls without a name, by the browser's own accessibility tree."""
    client = page.context.new_cdp_session(page)
    nodes = client.send("Accessibility.getFullAXTree")["nodes"]
    client.detach()
    found = []
    for node in nodes:
        role = node.get("role", {}).get("value", "")
        if not node.get("ignored") and role in NAMED and not str(node.get("name", {}).get("value", "")).strip():
            found.append(f"{role} {node.get('backendDOMNodeId')} {node.get('properties', [])[:2]}")
    return found
