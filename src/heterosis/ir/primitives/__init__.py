"""The primitives that programs are made of: their families, and all of them in one table."""
