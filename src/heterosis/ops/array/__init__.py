"""Making arrays, and giving their elements other places."""
