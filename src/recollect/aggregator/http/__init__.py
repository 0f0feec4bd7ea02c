"""The server: aggregator API, published maps, pages."""
