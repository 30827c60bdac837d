"""The HTTP door, on loopback only. It has no logic of its own: what it takes goes the way every hook goes."""
