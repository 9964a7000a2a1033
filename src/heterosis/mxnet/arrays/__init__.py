"""Functions on arrays by MXNet's older names that are no operators of symbol files."""
