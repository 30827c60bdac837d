"""`holdfast team server`: stateless processes on PostgreSQL that receive what machines forward and send the team's
decisions."""
