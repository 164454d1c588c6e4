"""The audit trail: reading it, its types of events, and exports as jobs."""
