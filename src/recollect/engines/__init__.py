"""Where an operation runs: on this machine, or on Spark."""
