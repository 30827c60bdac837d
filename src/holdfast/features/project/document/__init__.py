"""The SESSION_STATE document: how it is made, written, read in every version, and checked."""
