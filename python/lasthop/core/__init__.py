"""Foundations: names, units, statistics and files. Nothing here imports another package."""
