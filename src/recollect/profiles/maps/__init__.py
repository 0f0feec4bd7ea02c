"""Maps as they lie on disk: merging, searching, comparing, publishing them."""
