"""Kinds that other distributions bring through the entry-point group `effaced.resolvers`."""

from __future__ import annotations

import asyncio
import importlib
import sys
from uuid import uuid4

import pytest

from effaced.core.errors import ConfigurationError
from effaced.model import SubjectRef
from effaced.resolvers.load import load_registry
from effaced.resolvers.protocols import Retained

MODULE = """
from effaced.core.errors import ConfigurationError, Problem
from effaced.resolvers.protocols import Retained
from effaced.resolvers.settings import Strict, validate


class Settings(Strict):
    shelf: str


class Archive:
    def __init__(self, name, shelf, limits):
        self.name, self.shelf, self.limits = name, shelf, limits

    @classmethod
    def from_config(cls, name, config, limits):
        return cls(name, validate(Settings, config).shelf, limits)

    async def erase_subject(self, ref, *, key):
        return Retained("archive_law")


def plain(name, config, limits):
    return Archive(name, config["shelf"], limits)


def pydantic_only(name, config, limits):
    return Archive(name, Settings.model_validate(config).shelf, limits)


def broken(name, config, limits):
    raise RuntimeError("s3cret")


def sentence(name, config, limits):
    raise ConfigurationError("shelf 9 is full")


def nothing(name, config, limits):
    return None


number = 7
"""


def install(folder, name: str, points: str, module: str = MODULE) -> None:
    """What `pip install` leaves behind: a module and its distribution's metadata."""
    (folder / f"{name}.py").write_text(module)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[effaced.resolvers]\n{points}\n")


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder on sys.path; what is imported from it is forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("acme"):
            del sys.modules[name]
    importlib.invalidate_caches()


def load(tmp_path, kind: str, extra: str = "shelf: B4, "):
    path = tmp_path / "resolvers.yaml"
    path.write_text(f"version: 1\nresolvers:\n  archive: {{kind: {kind}, {extra}ref: person, timeout: 3}}\n")
    return load_registry(path).get("archive")


@pytest.mark.parametrize("target", ["acme:Archive", "acme:plain"], ids=["class", "callable"])
def test_an_installed_kind_makes_resolvers(site, target):
    install(site, "acme", f"archive = {target}")
    archive = load(site, "archive")
    answer = asyncio.run(archive.resolver.erase_subject(SubjectRef("person", "1"), key=uuid4()))
    assert Retained("archive_law") == answer


def test_a_kind_gets_its_own_keys_and_the_limits(site):
    install(site, "acme", "archive = acme:Archive")
    resolver = load(site, "archive").resolver
    assert (resolver.name, resolver.shelf, resolver.limits.timeout.total_seconds()) == ("archive", "B4", 3)


@pytest.mark.parametrize(
    ("target", "extra", "sentence"),
    [
        (
            "acme:Archive",
            "shelf: B4, shelv: B4, ",
            "resolvers.archive.shelv: unknown key; did you mean 'shelf'?",
        ),
        ("acme:Archive", "", "resolvers.archive.shelf: is required"),
        ("acme:pydantic_only", "shelf: B4, x: 1, ", "resolvers.archive.x: unknown key"),
        ("acme:sentence", "", "resolvers.archive: shelf 9 is full"),
        ("acme:broken", "", "resolvers.archive: the kind 'archive' could not make a resolver (RuntimeError)"),
        ("acme:nothing", "", "resolvers.archive: the kind 'archive' made something that is no resolver"),
        ("acme:number", "", "resolvers.archive.kind: the kind 'archive' is neither callable nor has a"),
        ("acme:absent", "", "resolvers.archive.kind: the kind 'archive' can't be imported (AttributeError)"),
        (
            "acme_gone:x",
            "",
            "resolvers.archive.kind: the kind 'archive' can't be imported (ModuleNotFoundError)",
        ),
    ],
)
def test_a_kind_that_goes_wrong_is_a_problem_of_the_file(site, target, extra, sentence):
    install(site, "acme", f"archive = {target}")
    with pytest.raises(ConfigurationError) as raised:
        load(site, "archive", extra)
    (problem,) = raised.value.problems
    assert sentence in f"{problem}"
    assert "s3cret" not in f"{raised.value}"


def test_a_built_in_kind_cannot_be_replaced(site):
    install(site, "acme", "noop = acme:Archive")
    assert type(load(site, "noop", "").resolver).__name__ == "NoopResolver"


def test_two_distributions_cannot_bring_the_same_kind(site):
    install(site, "acme", "archive = acme:Archive")
    install(site, "acme_two", "archive = acme_two:Archive")
    with pytest.raises(ConfigurationError, match="bring a kind 'archive': acme, acme_two"):
        load(site, "archive")


def test_an_unknown_kind_names_installed_ones(site):
    install(site, "acme", "archive = acme:Archive")
    with pytest.raises(ConfigurationError, match="did you mean 'archive'"):
        load(site, "archiv")
