"""`holdfast demo`: a recorded day (day.yaml), played through the real hook into a throw-away Holdfast.

The day ends now. So that the morning is the morning everywhere (in the log, in what jobs find, in what people command),
the daemon that takes the day in runs on a clock the player moves (clock.py); the hooks are the real client with the same
clock. When the day is over, an ordinary daemon takes over on the ordinary clock.
"""
