"""The derivatives of primitives: a rule for each, a module for each subject of `ir.primitives`."""
