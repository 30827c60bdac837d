"""The outcome of a session for whoever continues: summary, hand-over, compaction."""
