"""Maps that keep themselves current: which index files changed, what that changes in the map, and publishing it."""
