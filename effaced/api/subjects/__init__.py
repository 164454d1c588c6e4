"""People, by the keyed hashes that stand for them."""
