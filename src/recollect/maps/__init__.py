"""Maps on disk: merging, searching, comparing, publishing them."""
