"""The state of sessions: the types of its documents, how events change them, how they are looked up."""
