"""A draft as plain YAML, for tests that ask what it says about one thing."""

from __future__ import annotations

from typing import Any

import yaml

from effaced.draft.draft import draft_map


class _Plain(yaml.SafeLoader):
    """`on` is a word here, as it is for the data map."""


_Plain.yaml_implicit_resolvers = {
    letter: [each for each in found if each[0] != "tag:yaml.org,2002:bool"]
    for letter, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def drafted(company: Any, *statements: str, **options: Any) -> Any:
    """What the draft says, read as plain YAML."""
    company.run(*statements)
    return read(draft_map(company.session.connection(), **options).text)


def read(text: str) -> Any:
    return yaml.load(text, _Plain)


def review(rule: Any) -> str:
    assert set(rule) == {"review"}
    return str(rule["review"])
