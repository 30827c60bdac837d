"""Which of several statements hold on a given day: newer against older, exceptions, ends, whose words."""

from holdfast.features.memory.validity.resolve import Statement, superseded_by, valid_statements

__all__ = ["Statement", "superseded_by", "valid_statements"]
