"""The commands of recovery: `recover`, `survey`, `measure`, `review`, `preview`."""
