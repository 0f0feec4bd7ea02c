"""Smaller maps that lose nothing: by weights, by budget, and the voids of what is not held."""
