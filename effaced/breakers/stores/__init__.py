"""Where breakers are kept: memory, SQL or Redis, all by one contract."""
