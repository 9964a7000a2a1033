"""All modules with rows of the tables, which are filled once this is imported."""

from heterosis.codegen.lowerings import products, reducers

__all__ = ["products", "reducers"]
