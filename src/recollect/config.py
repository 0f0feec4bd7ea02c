"""Settings: one frozen value, merged once from TOML, environment and flags."""
