"""The types of audit events and the keys of their payloads.

They are a public format and change only by addition: a test compares them with a list of all of them.
"""

# ruff: noqa: F403
from effaced.audit.events.access import *
from effaced.audit.events.base import *
from effaced.audit.events.calls import *
from effaced.audit.events.dead_letters import *
from effaced.audit.events.operations import *
from effaced.audit.events.requests import *
