"""The data map page."""
