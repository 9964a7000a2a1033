"""Products and factorisations of matrices."""
