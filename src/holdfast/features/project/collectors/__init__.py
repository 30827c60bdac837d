"""Looks at the world, one small file each. They run as jobs, never in an agent's wait, and report only what changed."""
