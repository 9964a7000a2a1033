"""Layers of neural networks, and losses."""
