"""What every package is built on, with nothing of requests in it: time, settings, keys, database, files."""
