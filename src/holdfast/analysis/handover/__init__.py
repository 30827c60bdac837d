"""What a session came to, for whoever goes on with it: summary, hand-over, compaction."""
