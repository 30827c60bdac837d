"""The section `attention` of the settings. Only the user's own values count: a project cannot set channels."""

import re
from typing import Annotated, Literal

from msgspec import Meta

from holdfast.core.section import After, Section

Kind = Literal[
    "permission", "question", "finished", "refused", "failed", "budget", "uat", "discarded", "unrecorded", "all"
]
Channel = Literal["desktop", "terminal", "page", "webhook", "ntfy", "chat", "email"]


def _check_hours(text: str) -> str:
    if text and not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d", text):
        raise ValueError("must be like 22:00-07:00")
    return text


def _check_address(text: str) -> str:
    if text and not re.fullmatch(r"https?://[^\s/]+\S*", text):
        raise ValueError("must be an http or https address")
    return text


Hours = Annotated[str, After(_check_hours)]
Address = Annotated[str, Meta(max_length=2000), After(_check_address)]


class Rule(Section):
    """Which needs go where. The first rule that fits a need decides."""

    projects: Annotated[tuple[str, ...], Meta(description="Globs of project folders; empty means all.")] = ()
    kinds: Annotated[tuple[Kind, ...], Meta(description="Which needs.")] = (
        "permission", "question",
    )  # fmt: skip
    channels: Annotated[tuple[Channel, ...], Meta(description="Where they go; empty means nowhere.")] = (
        "desktop", "terminal",
    )  # fmt: skip
    quiet_hours: Annotated[Hours, Meta(description="Local time in which it waits, e.g. 22:00-07:00.")] = ""
    while_looking: Annotated[bool, Meta(description="Notify even when you are looking at it.")] = False


class Mail(Section):
    server: Annotated[str, Meta(description="The SMTP server.")] = ""
    port: Annotated[int, Meta(ge=1, le=65535)] = 587
    encryption: Annotated[Literal["starttls", "tls", "none"], Meta(description="`none` only on loopback.")] = "starttls"
    user: str = ""
    password: str = ""
    sender: Annotated[str, Meta(description="The address it comes from.")] = ""
    to: Annotated[str, Meta(description="The address it goes to.")] = ""


class AttentionSettings(Section):
    marks = {"guarded": True}

    rules: tuple[Rule, ...] = (Rule(),)
    typed_seconds: Annotated[
        int, Meta(ge=0, le=3600, description="So long after a key was pressed in a session's terminal you are there.")
    ] = 20
    batch_seconds: Annotated[
        float, Meta(ge=0, le=60, description="Needs that come within this time are one notification.")
    ] = 0.5
    webhook: Annotated[Address, Meta(description="Gets a signed JSON by POST.")] = ""
    webhook_secret: Annotated[str, Meta(description="Signs it: header X-Holdfast-Signature, HMAC-SHA256.")] = ""
    ntfy: Annotated[Address, Meta(description="The address of an ntfy topic.")] = ""
    ntfy_token: str = ""
    chat: Annotated[Address, Meta(description="An incoming webhook of Slack, Teams, Mattermost or Discord.")] = ""
    mail: Mail = Mail()
    answer_seconds: Annotated[
        int, Meta(ge=0, le=590, description="So long an agent that can wait does so for an answer from the dashboard.")
    ] = 590
    hold_seconds: Annotated[
        int, Meta(ge=0, le=590, description="The same for agents that show no dialog of their own meanwhile (Codex).")
    ] = 0
    address: Annotated[
        Address, Meta(description="Where you reach the dashboard; notifications then carry a link to answer with.")
    ] = ""
    link_minutes: Annotated[int, Meta(ge=1, le=1440, description="So long a link is good.")] = 30
    link_code: Annotated[
        str, Meta(max_length=100, description="A code of yours without which a link shows nothing; empty: none.")
    ] = ""


DEFAULTS = AttentionSettings()
