"""The derivatives of primitives: a rule for each, in a module for each subject of `ir.primitives`."""
