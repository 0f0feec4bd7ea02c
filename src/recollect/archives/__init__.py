"""Remote archives: the registry, and the only room that calls out."""
