"""The commands of protection: `protect`, `reclaim`."""
