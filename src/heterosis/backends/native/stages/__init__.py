"""Steps from program to program that are for this back end alone."""
