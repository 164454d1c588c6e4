"""Showing a data map: as a picture, in part, or by its differences from another."""
