"""The commands `recollect watch`."""
