"""What officers decide, through API keys that act in their names."""
