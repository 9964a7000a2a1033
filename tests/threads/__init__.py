"""What threads may do at the same time, with Python's interpreter lock and without it."""
