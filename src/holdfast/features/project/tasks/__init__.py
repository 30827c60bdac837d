"""What needs doing: how the checks stand, what is missing, and the tasks that follow."""
