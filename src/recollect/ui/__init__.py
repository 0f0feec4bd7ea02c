"""What every page and command shows: style, components, static files."""
