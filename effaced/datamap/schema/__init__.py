"""The live database: its tables, constraints, and what its catalog says beyond them."""
