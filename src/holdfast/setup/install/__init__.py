"""Adds hook entries to other programs' settings files and removes them."""
