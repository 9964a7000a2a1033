"""How this back end computes the primitives of `ir.primitives`: tables with a row for each."""
