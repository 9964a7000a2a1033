"""Settings and errors: what every other layer may use."""
