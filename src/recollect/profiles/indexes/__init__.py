"""From an archive's indexes to a map: reading, filtering, sorting, counting."""
