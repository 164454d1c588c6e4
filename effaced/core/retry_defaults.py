"""Retry defaults, used unless a setting overrides them. They are defined here and nowhere else.

The settings, `RetryPolicy` and `BackoffPolicy`, the runner and the library take theirs from here.
"""

from __future__ import annotations

# An external call: so many attempts, with doubling waits up to a cap, within so many days.
MAX_ATTEMPTS = 8
BASE_DELAY_SECONDS = 30
MAX_DELAY_SECONDS = 3_600
MAX_AGE_DAYS = 25
# How long a claim lasts, how many entries a run has under way, and how often an entry may end its process.
LEASE_SECONDS = 300
BATCH_SIZE = 50
CRASH_LIMIT = 3
# A request's own execution, where the database was away or a lock was not given: waits grow by one step each.
EXECUTION_ATTEMPTS = 5
EXECUTION_DELAY_SECONDS = 15
