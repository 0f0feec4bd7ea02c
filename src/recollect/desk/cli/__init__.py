"""The commands of the desk: `desk`, `worker`, `jobs`."""
