"""What a command really did: which checks ran, on what, and whether they passed."""
