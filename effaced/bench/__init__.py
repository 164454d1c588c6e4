"""`effaced bench`: how fast, as a ratio to the raw SQL that writes the same rows in the same run."""
