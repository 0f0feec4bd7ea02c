"""The commands of the aggregator: `serve`, `route`, `replay`, `timemap`, `memento`, `archives`, `doctor`."""
