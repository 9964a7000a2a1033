"""The rows of the table, by subject as in `heterosis.ir.primitives`."""
