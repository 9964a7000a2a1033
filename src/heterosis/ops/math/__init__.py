"""Mathematics, element by element and along axes."""
