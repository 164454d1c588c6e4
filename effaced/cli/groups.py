"""The groups of commands: which command is in which module. None of those is imported for a group's help."""

from __future__ import annotations

import click

from effaced.cli.lazy_group import LazyGroup


@click.group(
    cls=LazyGroup,
    lazy={
        "roles": (
            "database",
            "Create the roles that own, run and read, with no more rights than each needs.",
        ),
    },
)
def database() -> None:
    """The PostgreSQL roles that effaced's processes connect as."""


@click.group(cls=LazyGroup, lazy={"new": ("migrate", "Print a new key for EFFACED_KEYS.")})
def keys() -> None:
    """Keys that encrypt personal data, and recognise people by keyed hashes."""


@click.group(
    cls=LazyGroup,
    lazy={  # in the order in which they are used
        "draft": (
            "datamap.draft",
            "Write a first data map from the live database: what can be guessed, with the reason on each "
            "line.",
        ),
        "check": (
            "datamap.check",
            "Compare the data map with the live database and list everything that does not fit.",
        ),
        "show": ("datamap.show", "Show what the data map says, table by table."),
        "diff": (
            "datamap.diff",
            "Show what the map NEW does differently from the map OLD, the most serious first.",
        ),
        "picture": (
            "datamap.picture",
            "Draw the data map as SVG: tables, links and what happens to each column.",
        ),
    },
)
def datamap() -> None:
    """The data map: which table holds what about whom, and what an erasure does to it."""


@click.group(
    cls=LazyGroup,
    lazy={
        "list": (
            "retention",
            "Show what is kept, of which request, why, and when the first of it comes due.",
        ),
        "due": (
            "retention",
            "Show what is past its retention period, counted now by the map in force.",
        ),
        "erase": ("retention", "Erase what need not be kept any more, in short transactions."),
    },
)
def retention() -> None:
    """What erasures have kept under `retain`: until when, why, and erasing it when that has ended."""


@click.group(
    cls=LazyGroup,
    lazy={
        "list": (
            "resolver.commands",
            "Show every resolver: what it can do, what waits for it, and whether it is paused.",
        ),
        "check": (
            "resolver.check",
            "Prove the read-back of each system: it must see the canary, and must not see an invented "
            "reference.",
        ),
        "pause": ("resolver.commands", "Stop calls to one resolver, or to all."),
        "resume": ("resolver.commands", "Allow calls again."),
    },
)
def resolver() -> None:
    """The external systems of resolvers.yaml."""


@click.group(
    cls=LazyGroup,
    lazy={
        "list": (
            "deadletter.commands",
            "List dead letters, oldest first; without --status every unresolved one, given-up ones included.",
        ),
        "show": ("deadletter.commands", "Show one dead letter with its notes."),
        "stats": (
            "deadletter.commands",
            "Show totals, late ones by domain, what could be cleaned up, and the most frequent failures.",
        ),
        "requeue": (
            "deadletter.requeue",
            "Retry the named dead letters, or with --all those that match the filters, at a limited rate.",
        ),
        "redrives": ("deadletter.requeue", "Show the latest redrives and their progress."),
        "cancel": ("deadletter.requeue", "Cancel the rest of a redrive."),
        "resolve": (
            "deadletter.commands",
            "Record a decision about dead letters, with a reason: about all of them, or none.",
        ),
        "assign": ("deadletter.commands", "Assign dead letters to an officer, or to nobody."),
        "note": ("deadletter.commands", "Add a note to a dead letter."),
        "archive": ("deadletter.cleanup", "Archive settled dead letters."),
        "purge": (
            "deadletter.cleanup",
            "Remove archived dead letters and their notes for good, by age or by id.",
        ),
        "evict": (
            "deadletter.cleanup",
            "Remove the oldest archived dead letters for good; others are never evicted.",
        ),
        "summaries": (
            "deadletter.cleanup",
            "Show what is left of compressed dead letters: how many of each kind, from when to when.",
        ),
        "mark-summary": (
            "deadletter.cleanup",
            "Mark a summary as stale, so that it no longer grows, or as archived.",
        ),
    },
)
def deadletter() -> None:
    """Work that failed for good and waits for a person: calls, read-backs, executions, messages.

    `list` and `stats` show what there is, `requeue` retries one dead letter or a whole set, `resolve` closes
    it with a reason. `archive` puts settled ones away; `purge` and `evict` remove archived ones for good.
    """


@click.group(
    cls=LazyGroup,
    lazy={
        "show": (
            "breaker.commands",
            "Show every breaker: its state, what blocks it until when, its half-open budget, and its pin.",
        ),
        "summary": (
            "breaker.commands",
            "Show what breakers did: opens per hour, time saved (an estimate), trials, reasons.",
        ),
        "outages": (
            "breaker.commands",
            "Show what Redis did not take while it was away, and how the differences were resolved.",
        ),
        "open": ("breaker.commands", "Let no call through for a while."),
        "close": ("breaker.commands", "Let every call through for a while, whatever the results."),
        "unpin": ("breaker.commands", "Remove a pin and keep the state."),
        "reset": ("breaker.commands", "Close it and clear its counters, pin and cooldown."),
        "delete": (
            "breaker.commands",
            "Delete the breaker of a system that is not configured any more.",
        ),
        "advise": ("breaker.commands", "Suggest changes of policies and rates, with reasons."),
        "policy": (
            "breaker.commands",
            "Show the policy in force for each kind of call, the rate in force, and what was changed at run "
            "time.",
        ),
        "set": (
            "breaker.commands",
            "Change fields of a breaker's policy, such as fail_max=3, or a resolver's rate limit.",
        ),
        "undo": (
            "breaker.commands",
            "Revert the last change of a breaker's policy or of its rate limit.",
        ),
    },
)
@click.option(
    "--breaker",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    help="A policy's field for this command, such as defaults.fail_max=3; over file and environment.",
)
@click.pass_context
def breaker(context: click.Context, overrides: tuple[str, ...]) -> None:
    """Show circuit breakers and advice on them; pin, reset and configure them.

    NAME is a resolver, or host:NAME. Changes apply to every process at once.
    """
    from effaced.cli.breaker.commands import BreakerCommand

    context.obj = BreakerCommand(context.obj, overrides)


@click.group(
    cls=LazyGroup,
    lazy={
        "check": ("notify", "Read notify.yaml as the workers do, and show its targets."),
        "test": ("notify", "Send a test message to one target, and say how it went."),
        "log": ("notify", "Show the last deliveries, newest first."),
    },
)
def notify() -> None:
    """Who is notified when something needs a person, and whether it arrives."""


@click.group(
    cls=LazyGroup,
    lazy={
        "summary": ("retries", "Summarise the last hours, resolver by resolver."),
        "timeseries": ("retries", "Show the last hours one by one."),
        "policy": ("groups", "How often, how soon and for how long calls are retried."),
    },
)
def retries() -> None:
    """Attempts at external calls: their results, and the policy by which they are repeated."""


@click.group(
    cls=LazyGroup,
    lazy={
        "show": ("retries", "Show the policy in force, and what in it was changed at run time."),
        "set": ("retries", "Change some fields; earlier changes of others stay."),
        "undo": ("retries", "Revert the last change."),
    },
)
def policy() -> None:
    """How often, how soon and for how long calls are retried. A change holds in every process at once."""


@click.group(
    cls=LazyGroup,
    lazy={
        "add": ("officer", "Add somebody who can sign in."),
        "list": ("officer", "Show all officers."),
        "passwd": ("officer", "Set a new password."),
        "deactivate": ("officer", "End an officer's access."),
    },
)
def officer() -> None:
    """The people who work in the console."""


@click.group(
    cls=LazyGroup,
    lazy={
        "new": ("apikey", "Create a key."),
        "list": ("apikey", "Show all keys, without their secrets."),
        "revoke": ("apikey", "Revoke a key at once."),
    },
)
def apikey() -> None:
    """Keys with which the company's systems send requests."""


@click.group(
    cls=LazyGroup,
    lazy={
        "export": ("audit", "Export the trail."),
        "forget-note": ("audit", "Remove what somebody typed as a reason, for good."),
    },
)
def audit() -> None:
    """The audit trail."""


@click.group(
    cls=LazyGroup,
    lazy={
        "drain": (
            "bench",
            "Entries per second from pending to settled, with a resolver that does nothing.",
        ),
        "latency": ("bench", "From commit to claim, with the doorbell and with the sweep alone."),
        "erase": (
            "bench",
            "The transaction that erases a person from three tables and enqueues four calls.",
        ),
        "intake": (
            "bench",
            "Requests per second over HTTP, accepted and executed, by two web processes.",
        ),
        "bulk": (
            "bench",
            "A person with very many rows in one table: batches beside one transaction.",
        ),
        "plan": ("bench", "Checking a data map of many tables and making its statements."),
        "claim": ("bench", "One claim among entries that nobody may claim, and in an empty table."),
        "counts": ("bench", "Counting all entries by status."),
        "breaker": (
            "bench",
            "Admitting calls and reporting success: memory beside pybreaker, and Redis behind memory.",
        ),
    },
)
def bench() -> None:
    """Measure effaced against the least that does the same work, in one run."""
    from effaced.core import log

    log.configure("error", "text")


@click.group(
    cls=LazyGroup,
    lazy={
        "outage": ("demo", "Take a fake VENDOR down for a while, and watch its breaker."),
    },
)
def demo() -> None:
    """Drills on a demo that runs (`make run`)."""
    from effaced.core import log

    log.configure("critical", "text")
