"""URIs and keys."""
