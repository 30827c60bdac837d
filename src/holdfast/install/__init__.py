"""How hook entries get into somebody else's settings file and out again; `holdfast.install` is the way in."""
