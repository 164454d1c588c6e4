"""Whether a data map fits a database: every problem, and notes on what needs a look."""
