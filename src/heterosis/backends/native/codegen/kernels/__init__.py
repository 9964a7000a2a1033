"""Kernels that are no loop nests: products, convolutions, sorting, LAPACK."""
