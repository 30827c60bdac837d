"""What a finished turn teaches, by rules: no model, no tokens. Each rule is pure and gives candidates."""
