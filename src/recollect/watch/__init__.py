"""Knowing which sites are in danger, noticing when one is lost, and getting it back."""
