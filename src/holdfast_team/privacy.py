"""What leaves a machine: as which project, which fields of which events, and the log of what left."""

from typing import TypeVar

T = TypeVar("T")
