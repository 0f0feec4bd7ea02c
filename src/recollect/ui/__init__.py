"""The look of every page: templates and components (`pages`), charts, messages, static files."""
