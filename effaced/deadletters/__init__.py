"""Failed operations: what people must look at."""
