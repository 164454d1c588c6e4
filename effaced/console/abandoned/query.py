"""Which dead letters a page or a bulk action is about, in the URL and in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flask import url_for
from sqlalchemy.orm import Session

from effaced.console.current import me, runtime
from effaced.console.urls import not_allowed, request_id_of, with_query
from effaced.console.words import label
from effaced.deadletters.read import DeadLetterFilter
from effaced.deadletters.rules import OPEN as OPEN_STATUSES
from effaced.model import DeadLetterDomain, DeadLetterStatus

OPEN, ALL = "open", "all"
_STATUSES = (OPEN, ALL, *(status.value for status in DeadLetterStatus))
_DOMAINS = tuple(domain.value for domain in DeadLetterDomain)
_LONGEST = 255
YES, MINE, NOBODY, SOMEBODY = "yes", "me", "nobody", "somebody"
_WHOSE = (MINE, NOBODY)
_WHOSE_WORDS = {MINE: "assigned to you", NOBODY: "assigned to nobody", SOMEBODY: "assigned to one officer"}


@dataclass(frozen=True, slots=True)
class LetterQuery:
    """The filters of the list; an empty one takes everything."""

    status: str = OPEN
    domain: str = ""
    resolver: str = ""
    error: str = ""
    ref: str = ""
    late: str = ""
    whose: str = ""
    expired: str = ""

    @classmethod
    def read(cls, values: Mapping[str, str]) -> LetterQuery:
        """From a URL or a form; refuses words that don't exist, with those that do."""
        status, domain = values.get("status", "") or OPEN, values.get("domain", "")
        resolver, error, ref = (values.get(name, "").strip() for name in ("resolver", "error", "ref"))
        if status not in _STATUSES:
            raise not_allowed("status", _STATUSES)
        if domain and domain not in _DOMAINS:
            raise not_allowed("domain", _DOMAINS)
        for name, value in (("resolver", resolver), ("error", error), ("ref", ref)):
            if len(value) > _LONGEST or not value.isprintable():
                raise not_allowed(name, [f"at most {_LONGEST} printable characters"])
        late, whose, expired = (values.get(name, "") for name in ("late", "whose", "expired"))
        for name, value in (("late", late), ("expired", expired)):
            if value not in ("", YES):
                raise not_allowed(name, (YES,))
        if whose not in ("", *_WHOSE):
            raise not_allowed("whose", _WHOSE)
        return cls(status, domain, resolver, error, ref, late, whose, expired)

    @classmethod
    def of(cls, plain: Mapping[str, Any], ref: str = "") -> LetterQuery:
        """The filter that was kept with a redrive."""
        statuses = tuple(plain.get("statuses", ()))
        status = statuses[0] if len(statuses) == 1 else OPEN if statuses else ALL
        assigned = SOMEBODY if plain.get("assigned_to") else NOBODY if plain.get("unassigned") else ""
        return cls(
            status,
            plain.get("domain", ""),
            plain.get("resolver", ""),
            plain.get("error", ""),
            ref,
            YES if plain.get("late") else "",
            assigned,
            YES if plain.get("expired") else "",
        )

    def filter(self, session: Session) -> DeadLetterFilter:
        statuses = {OPEN: OPEN_STATUSES, ALL: ()}.get(self.status)
        return DeadLetterFilter(
            statuses=(DeadLetterStatus(self.status),) if statuses is None else statuses,
            domain=DeadLetterDomain(self.domain) if self.domain else None,
            resolver=self.resolver or None,
            error=self.error or None,
            request_id=request_id_of(session, self.ref),
            assigned_to=me().id if self.whose == MINE else None,
            unassigned=self.whose == NOBODY,
            late=self.late == YES,
            expired=self.expired == YES,
            sla=runtime().dead_letter_sla,
        )

    def fields(self) -> dict[str, str]:
        """What a form has to carry along."""
        return {name: getattr(self, name) for name in self.__slots__ if getattr(self, name)}

    def url(self, *, after: str | None = None, expand: str = "") -> str:
        values = self.fields() | {
            "status": "" if self.status == OPEN else self.status,
            "after": after or "",
            "expand": expand,
        }
        return with_query(url_for("console.abandoned.index"), values)

    @property
    def filtered(self) -> bool:
        return self != LetterQuery()

    def words(self) -> str:
        """The filter as people would say it."""
        late = "waiting too long"
        status = {OPEN: f"{late if self.late else 'waiting'} for a person", ALL: "in any state"}.get(
            self.status
        )
        parts = [
            status or f"in the state “{label(DeadLetterStatus(self.status)).lower()}”",
            f"from {label(DeadLetterDomain(self.domain)).lower()}" if self.domain else "",
            f"at {self.resolver}" if self.resolver else "",
            f"with the error {self.error}" if self.error else "",
            f"of request {self.ref}" if self.ref else "",
            late if self.late and self.status != OPEN else "",
            "past their retention" if self.expired else "",
            _WHOSE_WORDS.get(self.whose, ""),
        ]
        return ", ".join(part for part in parts if part)
