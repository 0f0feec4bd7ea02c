"""Settings for all tests. Being here also puts this directory on the path, so tests can import their helpers."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# Real servers as fixtures, and the list of skipped tests with what each one lacked.
pytest_plugins = ["needs", "servers"]

# `quick` is for every day; HYPOTHESIS_PROFILE=long looks further; `sanitize` is for the slow build of `make sanitize`.
settings.register_profile("quick", max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", max_examples=5000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("sanitize", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
