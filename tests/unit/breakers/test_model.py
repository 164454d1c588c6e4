"""The names of breakers: with their scope, and a host in whatever case."""

from __future__ import annotations

import pytest

from effaced.breakers.model import canonical_name, require_name, split_name
from effaced.core.errors import Refused


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("resolver:crm", "resolver:crm"),
        ("resolver:CRM", "resolver:CRM"),
        ("host:API.example", "host:api.example"),
        ("host:[::1]:8443", "host:[::1]:8443"),
        ("resolver:host:x", "resolver:host:x"),
    ],
)
def test_a_name_has_a_scope_and_a_host_is_in_lower_case(written: str, name: str) -> None:
    assert require_name(written) == canonical_name(written) == name


@pytest.mark.parametrize("written", ["", "crm", "resolver:", "host:", "vendor:crm", ":crm", "host:a\nb"])
def test_a_name_without_scope_or_key_is_refused(written: str) -> None:
    with pytest.raises(Refused, match=r"^A breaker's name must be resolver:NAME or host:NAME") as refused:
        require_name(written)
    assert [each.where for each in refused.value.problems] == ["name"]


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("resolver:crm", ("resolver", "crm")),
        ("host:api.example:8443", ("host", "api.example:8443")),
        ("api.example:8443", ("host", "api.example:8443")),
    ],
)
def test_a_name_is_split_at_its_scope_and_without_one_it_is_a_host(name: str, parts: tuple[str, str]) -> None:
    assert split_name(name) == parts
