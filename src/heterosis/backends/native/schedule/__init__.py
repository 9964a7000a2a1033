"""From a program to the kernels that run it: their order, their memory, what they share."""
