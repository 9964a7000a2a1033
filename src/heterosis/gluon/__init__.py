"""Layers, losses and training."""
