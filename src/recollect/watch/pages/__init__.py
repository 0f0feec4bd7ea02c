"""The pages of the watch: the check of a site, the dashboard."""
