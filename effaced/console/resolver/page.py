"""One system's page: what is on it, also when a form of it comes back with an error."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from flask import Response as Page
from flask import abort, request, url_for
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response

from effaced.accounts.actors import names_of
from effaced.audit.notes import read_notes
from effaced.breakers import transitions
from effaced.breakers.model import host_name
from effaced.console.current import runtime
from effaced.console.htmx import go_to, render, say
from effaced.console.resolver.activity import breaker_figures, outages
from effaced.console.resolver.policies import breaker_lines, breaker_name, override_of, retry_lines
from effaced.console.resolver.policy_form import CHOICES, PolicyForm
from effaced.console.resolver.read import SystemView, one_system
from effaced.console.resolver.suggestions import plans_for, undoable
from effaced.console.urls import with_query
from effaced.retries.overrides import Override
from effaced.triage.systems import breakers_of

MOVES = 20


class Form(StrEnum):
    """The forms of the page that ask for nothing but a reason."""

    ADVICE = "advice"
    ADVICE_UNDO = "advice_undo"
    POLICY_UNDO = "policy_undo"


@dataclass(frozen=True, slots=True)
class Typed:
    """What was typed into which form, of which breaker, and why it was refused."""

    form: Form
    reason: str
    error: str
    breaker: str = ""


def render_page(name: str, typed: Typed | None = None, *, policy: PolicyForm | None = None) -> Page:
    """The page; with what was typed where, if that was refused."""
    with runtime().db.read() as session:
        view = find(session, name)
        called = view.system.registered is not None and not view.system.by_hand
        override = override_of(session, name)
        host = view.system.registered.host if view.system.registered else None
        names = _breakers_of(name)
        context = {
            "retry": retry_lines(session, name) if called else [],
            "breaking": breaker_lines(session, breaker_name(name)) if called else [],
            "host_breaking": breaker_lines(session, host_name(host)) if called and host else [],
            "plans": plans_for(session, name) if called else [],
            "undoable": undoable(session, name) if called else [],
            "figures": breaker_figures(session, names) if called else [],
            "outages": outages(session, names),
            "override": override,
            "changed_by": _changed_by(session, override),
        }
    return render(
        "console/resolver/index.html",
        "console/resolver/_page.html",
        422 if typed or policy else 200,
        view=view,
        each=view,
        typed=typed,
        form=policy or PolicyForm.of(override.body if override else {}),
        asked=policy is not None,
        choices=CHOICES,
        **context,
        **moves(name),
    )


def find(session: Session, name: str) -> SystemView:
    found = one_system(session, name)
    if found is None:
        abort(404)
    return found


def moves(name: str) -> dict[str, object]:
    """A page of what its breakers did."""
    after = request.args.get("after") or None
    with runtime().db.read() as session:
        page = transitions.page(session, _breakers_of(name), after=after, limit=MOVES)
        who = names_of(session, [each.actor for each in page.items])
    url = url_for("console.resolver.index", name=name)
    return {"page": page, "who": who, "after": after, "next_url": with_query(url, {"after": page.next})}


def _breakers_of(name: str) -> tuple[str, ...]:
    registry = runtime().registry
    return breakers_of(registry.get(name)) if name in registry else (breaker_name(name),)


def back(name: str, said: str, *, tone: str = "good") -> Response:
    say(said, tone=tone)
    return go_to(url_for("console.resolver.index", name=name))


def _changed_by(session: Session, override: Override | None) -> tuple[str, str | None] | None:
    """Who changed it last, and why."""
    if override is None or not override.changed_by:
        return None
    name = names_of(session, [override.changed_by])[override.changed_by]
    notes = [override.note_id] if override.note_id else []
    return name, next(iter(read_notes(session, runtime().keyring, notes).values()), None)
