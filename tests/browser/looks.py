"""What can be said about any page by looking at it as the browser shows it."""

from functools import cache
from pathlib import Path
from typing import Any

from tests.real.programs import ProgramUnavailable, program

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


@cache
def axe_script() -> str:
    """axe-core itself; empty where this machine cannot get it."""
    try:
        return program("axe-core").read_text()
    except ProgramUnavailable:
        return ""


def violations(page: Any) -> list[str]:
    """What axe finds, each with the first places; without axe, the contrast as we measure it ourselves."""
    if not axe_script():
        return weak_contrast(page)
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe_script() + "; null")
    found = page.evaluate("() => axe.run({ resultTypes: ['violations'] }).then((told) => told.violations)")
    return [f"{one['id']}: {[' '.join(node['target']) for node in one['nodes'][:4]]}" for one in found]


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
