"""Layered settings: defaults < user < project < local < environment. Nothing in a file takes the rest down."""

from holdfast.core.section import Section
from holdfast.settings.cache import SettingsCache
from holdfast.settings.elsewhere import Elsewhere
from holdfast.settings.notice import DEFAULT, Notice, Origin
from holdfast.settings.resolved import Resolved
from holdfast.settings.schema import json_schema
from holdfast.settings.sections import FOUNDATION
from holdfast.settings.settings import Settings

__all__ = [
    "DEFAULT",
    "FOUNDATION",
    "Elsewhere",
    "Notice",
    "Origin",
    "Resolved",
    "Section",
    "Settings",
    "SettingsCache",
    "json_schema",
]
