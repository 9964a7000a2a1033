"""What writes each primitive, by the modules that declare them."""
