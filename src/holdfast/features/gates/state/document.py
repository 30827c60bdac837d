"""What the documents of the gates have in common."""

import msgspec


class Document(msgspec.Struct, frozen=True, omit_defaults=True):
    """A field at its default is not stored."""


replace = msgspec.structs.replace
