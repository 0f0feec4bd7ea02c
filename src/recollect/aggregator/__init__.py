"""Memento aggregation: routing (pure), gathering, breaker, cache."""
