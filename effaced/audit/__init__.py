"""The audit trail: typed events, appended with what they tell of, exported as evidence."""
