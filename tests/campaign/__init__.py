"""Faults at full size. Each module has `FULL` and `run(folder, size) -> str`; tests/faults/ runs a sample of each."""
