"""The pure middle of the house. Imports nothing else of ours."""
