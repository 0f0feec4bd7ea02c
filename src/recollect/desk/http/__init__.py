"""The recovery desk over HTTP: the API of people, workers and the operator, and their pages."""
