"""`holdfast demo`: plays a recorded day (day.yaml) through the real hook into a temporary Holdfast.

The day ends now. To make its times consistent in the log, in jobs and in people's commands, its daemon runs on a clock
that the player moves (clock.py), and so does the hook client. Afterwards an ordinary daemon takes over.
"""
