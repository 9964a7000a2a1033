"""All modules with rows of the tables, which are filled once this is imported."""

from heterosis.codegen.lowerings import products, recurrent, reducers, windows

__all__ = ["products", "recurrent", "reducers", "windows"]
