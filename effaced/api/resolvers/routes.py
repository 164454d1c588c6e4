"""Resolvers over HTTP: what is connected, how it does, and pausing it."""

from __future__ import annotations

from effaced.accounts.scopes import Scope
from effaced.api.breakers.bodies import OperatorBody
from effaced.api.operations.call import Call
from effaced.api.operations.declare import Routes
from effaced.api.resolvers import models
from effaced.api.resolvers.models import PauseBody
from effaced.api.resolvers.show import show_pause, show_resolvers
from effaced.core.errors import NotFound
from effaced.core.strict import suggest
from effaced.outbox.flow import ALL, pauses
from effaced.triage import pause

routes = Routes(
    "Resolvers",
    "/api/v1/resolvers",
    about="The systems that are called to erase or correct people: what they can do, and how they do.",
)


@routes.get(scope=Scope.OPERATE_READ)
def list_resolvers(call: Call) -> models.ResolverList:
    """Every configured system, then those of which only entries, dead letters or a pause are left."""
    return models.ResolverList(data=show_resolvers(call))


@routes.get("/<resolver>", scope=Scope.OPERATE_READ)
def get_resolver(call: Call, resolver: str) -> models.Resolver:
    """One system."""
    found = show_resolvers(call, resolver)
    if not found:
        raise _unknown(call, resolver)
    return found[0]


@routes.post("/<resolver>/pause", scope=Scope.OPERATE_WRITE, secrets=("pause.reason",))
def pause_resolver(call: Call, resolver: str, body: PauseBody) -> models.ResolverPauseState:
    """Have nothing of it called for a while, or until it is resumed. `*` stands for all of them.

    Entries keep their attempts, and calls in flight are finished. 409 if it is paused already.
    """
    name = _known(call, resolver)
    pause.pause(call.session, call.keyring, name, actor=call.actor, reason=body.reason, hours=body.hours)
    return show_pause(call, name)


@routes.post("/<resolver>/resume", scope=Scope.OPERATE_WRITE, secrets=("pause.reason",))
def resume_resolver(call: Call, resolver: str, body: OperatorBody) -> models.ResolverPauseState:
    """Let it be called again. `*` ends the pause of all, and leaves those of single resolvers.

    409 if it is not paused.
    """
    name = _known(call, resolver)
    pause.resume(call.session, call.keyring, name, actor=call.actor, reason=body.reason)
    return show_pause(call, name)


def _known(call: Call, resolver: str) -> str:
    """A resolver that is configured or paused, or `*`."""
    if resolver == ALL or resolver in call.runtime.registry or resolver in pauses(call.session):
        return resolver
    raise _unknown(call, resolver)


def _unknown(call: Call, resolver: str) -> NotFound:
    known = [each.name for each in call.runtime.registry]
    return NotFound(f"No resolver has this name{suggest(resolver, known)}")
