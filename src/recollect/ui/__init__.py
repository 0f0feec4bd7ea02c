"""The look of every page: templates and components (`pages`), charts, messages in the reader's language, static files."""
