"""What a resolver may be called: one rule at every door, and no name that only one database can store."""

from __future__ import annotations

from pathlib import Path

import pytest
from saga_cast import KEYRING, House, Vendor

from effaced.breakers.registry import BreakerRegistry
from effaced.breakers.stores.sql import SqlBreakerStore
from effaced.core.errors import ConfigurationError
from effaced.core.names import LONGEST, LONGEST_KIND
from effaced.model import OutboxStatus, SubjectRef
from effaced.outbox.enqueue import Call
from effaced.resolvers.load import load_registry
from effaced.resolvers.registry import Registered
from effaced.saga.facade import Outbox, OutboxEntry

REF = SubjectRef("person", "1")
BAD_NAMES = pytest.mark.parametrize(
    "name", ["", " ", "x" * (LONGEST + 1), "a\x00b", "a\nb", "a\x7fb", "a\u2028b", "a\ud800b", "*"], ids=ascii
)
SENTENCE = r"^A resolver('s name must have 1 to 246 characters, all of them printable| can't be named '\*')"


@BAD_NAMES
def test_a_name_that_can_not_be_kept_is_refused_at_registration(name: str) -> None:
    with pytest.raises(ConfigurationError, match=SENTENCE):
        Registered(name, "person", Vendor())


@BAD_NAMES
def test_a_name_that_can_not_be_kept_is_refused_before_anything_is_enqueued(house: House, name: str) -> None:
    entries = [OutboxEntry("crm", REF, "1"), OutboxEntry(name, REF, "2")]
    with house.db.begin() as session:
        with pytest.raises(ConfigurationError, match=SENTENCE):
            Outbox(house.db.sessions, keyring=KEYRING).enqueue(session, entries)
        with pytest.raises(ConfigurationError, match=SENTENCE):
            Call(name, REF)
        with pytest.raises(ConfigurationError, match=SENTENCE):
            Call("crm", REF, after=[name])
    assert house.entries() == []


@BAD_NAMES
def test_a_name_that_can_not_be_kept_is_refused_in_the_file(tmp_path: Path, name: str) -> None:
    written = "".join(f"\\u{ord(letter):04x}" for letter in name)
    (path := tmp_path / "resolvers.yaml").write_text(
        f'version: 1\nresolvers:\n  "{written}": {{kind: noop, ref: person}}\n'
    )
    with pytest.raises(ConfigurationError, match=r"resolvers\.yaml:3: "):
        load_registry(path)


def test_a_kind_of_reference_that_can_not_be_kept_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="A reference's kind must have 1 to 64 characters"):
        Call("crm", SubjectRef("x" * (LONGEST_KIND + 1), "1"))


def test_the_longest_name_is_called_counted_and_kept(house: House) -> None:
    name = "ü" * LONGEST
    breakers = BreakerRegistry(SqlBreakerStore(house.db.sessions))
    house.registry.register(Registered(name, "person", Vendor(answer=lambda _: OSError())))
    with house.db.begin() as session:
        house.outbox().enqueue(session, [OutboxEntry(name, REF, "1")])
    house.drain(name, breakers=breakers)
    assert house.entry().status is OutboxStatus.FAILED
    (row,) = breakers.store.load_all()
    assert (row.service_name, row.failure_count) == (f"resolver:{name}", 1)
