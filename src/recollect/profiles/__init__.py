"""Profiles and maps: no network, no clock."""
