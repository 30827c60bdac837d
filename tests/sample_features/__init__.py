"""Rooms that exist only for tests."""
