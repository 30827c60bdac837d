"""Cost of sessions: token use as agents record it, prices, and sums."""
