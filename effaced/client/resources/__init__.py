"""All resources of the API.

Written by `make record` from the OpenAPI document.
"""

from __future__ import annotations

from typing import Generic

from effaced.client.resources.audit import AuditApi
from effaced.client.resources.breakers import BreakersApi
from effaced.client.resources.data_map import DataMapApi
from effaced.client.resources.dead_letter_clean_up import DeadLetterCleanUpApi
from effaced.client.resources.dead_letters import DeadLettersApi
from effaced.client.resources.decisions import DecisionsApi
from effaced.client.resources.keys import KeysApi
from effaced.client.resources.messages import MessagesApi
from effaced.client.resources.redrives import RedrivesApi
from effaced.client.resources.requests import RequestsApi
from effaced.client.resources.resolvers import ResolversApi
from effaced.client.resources.retentions import RetentionsApi
from effaced.client.resources.retries import RetriesApi
from effaced.client.resources.retries_of_a_request import RetriesOfARequestApi
from effaced.client.resources.subjects import SubjectsApi
from effaced.client.runners import M


class Resources(Generic[M]):
    """The resources of a client, by their names."""

    def __init__(self, runner: M) -> None:
        self.requests = RequestsApi(runner)
        self.decisions = DecisionsApi(runner)
        self.retries_of_a_request = RetriesOfARequestApi(runner)
        self.subjects = SubjectsApi(runner)
        self.dead_letters = DeadLettersApi(runner)
        self.dead_letter_clean_up = DeadLetterCleanUpApi(runner)
        self.redrives = RedrivesApi(runner)
        self.retentions = RetentionsApi(runner)
        self.resolvers = ResolversApi(runner)
        self.breakers = BreakersApi(runner)
        self.retries = RetriesApi(runner)
        self.data_map = DataMapApi(runner)
        self.messages = MessagesApi(runner)
        self.audit = AuditApi(runner)
        self.keys = KeysApi(runner)
