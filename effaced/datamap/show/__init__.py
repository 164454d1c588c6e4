"""Showing a data map: as a picture, in part, or by how it differs from another."""
