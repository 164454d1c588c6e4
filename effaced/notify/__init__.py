"""Messages that must get out: rows first, delivery after."""
