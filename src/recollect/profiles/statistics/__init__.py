"""Statistics of what an archive holds, and of how correct its maps are."""
