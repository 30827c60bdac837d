"""Scenarios: what their files say, and the plan of a run made from one."""
