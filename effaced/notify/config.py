"""Reading notify.yaml: which targets get which notices, and how they are reached."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from effaced.core.errors import ConfigurationError, NotFound
from effaced.core.strict import suggest, validate
from effaced.core.yaml.blocks import Reading
from effaced.core.yaml.file import Place, YamlFile, read_yaml
from effaced.notify.email import EmailConfig, EmailTarget
from effaced.notify.target import Target
from effaced.notify.webhook import WebhookConfig, WebhookTarget

_KINDS = ("email", "webhook")


@dataclass(frozen=True, slots=True)
class Targets:
    """All targets."""

    all: tuple[Target, ...] = ()

    def __iter__(self) -> Iterator[Target]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(each.name for each in self.all)

    def named(self, name: str) -> Target:
        for each in self.all:
            if each.name == name:
                return each
        raise NotFound(f"No target is named '{name}'{suggest(name, self.names)}")


def load_targets(
    path: Path | str, environ: Mapping[str, str] = os.environ, *, public_url: str | None = None
) -> Targets:
    """The targets a file describes. Refuses a wrong file with all of its problems at once."""
    return _Reading(read_yaml(Path(path)), environ, public_url).targets()


class _Reading(Reading):
    under = "targets"
    block_has = "`kind` and more"

    def __init__(self, file: YamlFile, environ: Mapping[str, str], public_url: str | None) -> None:
        super().__init__(file, environ)
        self.public_url = public_url

    def targets(self) -> Targets:
        found = [self.target(name, block) for name, block in self.blocks()]
        self.require_no_problems()
        return Targets(tuple(each for each in found if each is not None))

    def target(self, name: str, block: dict[str, Any]) -> Target | None:
        place: Place = (self.under, name)
        config = self.filled(place, block)
        kind = config.get("kind")
        try:
            if kind == "webhook":
                return WebhookTarget(name, validate(WebhookConfig, config))
            if kind == "email":
                return EmailTarget(name, validate(EmailConfig, config), self.public_url)
        except ConfigurationError as error:
            self.pass_on(place, error.problems)
            return None
        wrong = f"there is no such kind{suggest(str(kind), _KINDS)}" if kind else "is required"
        self.complain((*place, "kind"), wrong)
        return None
