"""From program to program, for any back end."""
