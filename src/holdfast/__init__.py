"""Holdfast keeps the state of AI coding sessions."""

__version__ = "0.1.0"
