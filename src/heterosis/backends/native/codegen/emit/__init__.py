"""What every kernel is written with: typed values, loops, access to memory, functions."""
