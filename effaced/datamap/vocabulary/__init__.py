"""What the names of tables and columns say: words in several languages, and what they stand for."""
