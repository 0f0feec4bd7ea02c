"""Remote archives: the registry, and the only package that sends requests to other hosts."""
