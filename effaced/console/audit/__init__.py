"""The audit page, and the sentences that events are told in."""
