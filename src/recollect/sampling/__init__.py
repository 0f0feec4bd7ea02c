"""Profiling archives from outside: asking about known URIs, listing prefixes, searching their full text."""
