"""A small company to try everything on, and its fake vendors."""
