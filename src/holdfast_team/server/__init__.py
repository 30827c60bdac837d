"""`holdfast server`: stateless processes on PostgreSQL that take in what machines forward and tell them what the team decided."""
