"""Redrives over HTTP: retrying a whole set of dead letters."""
