"""Work in the background: recovery, token use, summaries, parents, exit codes."""

# It reports by events.
