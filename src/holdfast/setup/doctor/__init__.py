"""Finds problems of an installation, for `holdfast doctor` and the Health page."""
