"""Layered settings: defaults < user < project < local < environment. Nothing in a file takes the rest down."""

from holdfast.core.section import Section
from holdfast.settings.layers import OtherPlacements, Settings, SettingsCache, json_schema
from holdfast.settings.resolve import Resolved
from holdfast.settings.sections import DEFAULT, FOUNDATION, Notice, Origin

__all__ = [
    "DEFAULT",
    "FOUNDATION",
    "Notice",
    "Origin",
    "OtherPlacements",
    "Resolved",
    "Section",
    "Settings",
    "SettingsCache",
    "json_schema",
]
