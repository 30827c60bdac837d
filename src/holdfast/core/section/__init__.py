"""Sections of settings files (and other files that people write): structs that take all kinds of mistakes kindly."""

from holdfast.core.section.annotation import ALONE, After, Before, part_of
from holdfast.core.section.section import Section, Unfit

__all__ = ["ALONE", "After", "Before", "Section", "Unfit", "part_of"]
