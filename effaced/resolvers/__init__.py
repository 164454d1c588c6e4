"""Talking to other systems: the protocols, the registry, one module per kind of system."""
