"""Layered settings: defaults < user < project < local < environment; a bad value never discards the rest."""

from holdfast.core.section import Section
from holdfast.settings.cache import SettingsCache
from holdfast.settings.layers import Settings
from holdfast.settings.placements import OtherPlacements
from holdfast.settings.published_schema import json_schema
from holdfast.settings.resolved import Resolved
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
