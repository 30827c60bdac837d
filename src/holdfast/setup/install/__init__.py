"""How hook entries get into somebody else's settings file and out again; `holdfast.setup.install` is the way in."""
