"""Bytes to model and back: one module per format, each with its byte layout in its docstring."""
