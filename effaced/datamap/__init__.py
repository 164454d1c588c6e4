"""Which table holds what about whom: map, check, plan, erase."""
