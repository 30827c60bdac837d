"""What sessions cost: token use as the agents wrote it down, prices, and sums. Imports only core."""
