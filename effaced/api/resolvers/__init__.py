"""Connected systems over HTTP."""
