"""Decides what leaves a machine: as which project, which fields of which events; and logs it."""

from typing import TypeVar

T = TypeVar("T")
