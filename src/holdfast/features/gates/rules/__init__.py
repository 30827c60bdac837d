"""Rules: what a requirement asks for, when it is asked, what proves it, which rules count, how a refusal is worded."""
