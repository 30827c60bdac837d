"""The contract of a screen: its address, template and views; and the health figures that several share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.core.ports import Reader
from holdfast.doors.web.view_client import ViewClient


@dataclass(frozen=True)
class Visit:
    """The input of a screen: the request, and how to ask the features."""

    client: ViewClient
    query: Mapping[str, str]
    path: Mapping[str, str] = field(default_factory=dict)

    @property
    def project(self) -> str:
        return self.query.get("project", "")

    def view(self, name: str, *, whose: str = "", of: str | None = None, **args: Any) -> Any:
        """One view of a feature, for project `of` (default: the page's) and session `whose`."""
        return self.client.view(name, args, project=self.project if of is None else of, session=whose)

    def number(self, name: str, default: int = 0) -> int:
        text = self.query.get(name, "")
        return int(text) if text.isdecimal() and len(text) < 17 else default

    @property
    def reader(self) -> Reader:
        return self.client.reader()


Page = Callable[[Visit], dict[str, Any]]
"""The template's context. Raise a HoldfastError for what cannot be shown."""


@dataclass(frozen=True)
class Screen:
    name: str
    title: str
    path: str
    page: Page
    template: str = ""
    key: str = ""
    """`g` and this letter open it; empty: it is not in the menu."""
    live: str = ""
    """Prefixes of event kinds that refresh the page, e.g. "gate. decision."; "*" means all."""
    script: str = ""
    """A module of its own in static/, besides the core."""

    @property
    def file(self) -> str:
        return self.template or f"{self.name}.html"
