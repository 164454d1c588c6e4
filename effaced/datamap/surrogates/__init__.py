"""What changed cells hold: the SQL that writes a surrogate, and the functions that SQLite needs for it."""
