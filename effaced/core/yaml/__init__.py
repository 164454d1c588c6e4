"""YAML files whose keys know their line, so that a complaint can point at the place."""
