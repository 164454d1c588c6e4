"""Reading a data map from its YAML file."""
