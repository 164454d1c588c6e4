"""The suite for resolver authors finds what is wrong, and says so to somebody who has only pytest."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from broken_resolvers import FAILS

from effaced import testing
from effaced.testing.conformance import Hooks

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "testing.md"
SUPPORT = Path(__file__).parents[1] / "support"


def run_pytest(folder: Path, *arguments: str | Path) -> str:
    """What pytest says in an author's folder: without our configuration, and without plugins."""
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", "pytest.ini", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env=os.environ
        | {"PYTHONPATH": str(SUPPORT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


def read_results(path: Path) -> Iterator[tuple[str, str, str]]:
    """Class, test and outcome."""
    for case in ElementTree.parse(path).iter("testcase"):
        outcome = next((each.tag for each in case if each.tag != "system-out"), "passed")
        yield case.attrib["classname"].rpartition(".")[2], case.attrib["name"], outcome


def test_finds_exactly_what_is_wrong_with_each_broken_resolver(tmp_path: Path) -> None:
    """One run for all of them: as a test each, every worker of a parallel run would make it again."""
    report = tmp_path / "results.xml"
    run_pytest(
        tmp_path, "--rootdir", SUPPORT, f"--junitxml={report}", "--tb=no", SUPPORT / "broken_resolvers.py"
    )
    failed: dict[str, set[str]] = {}
    for suite, test, outcome in read_results(report):
        failed.setdefault(suite, set())
        if outcome != "passed":
            failed[suite].add(test if outcome == "failure" else f"{test}: {outcome}")
    assert {name: tests for name, tests in FAILS.items() if failed.get(name) != tests} == {}, failed
    assert failed.keys() == FAILS.keys()


def test_has_no_test_that_no_resolver_fails() -> None:
    classes = [each for each in vars(testing).values() if isinstance(each, type)]
    tests = {name for each in classes for name in vars(each) if name.startswith("test_")}
    found = {name.partition("[")[0] for names in FAILS.values() for name in names}
    assert tests
    assert tests == found


SAYS_NOTHING = """
from effaced.resolvers.noop import NoopResolver
from effaced.testing import ResolverConformance


class TestNoop(ResolverConformance):
    def make_resolver(self):
        return NoopResolver()
"""


def test_says_which_hooks_are_missing(tmp_path: Path) -> None:
    (tmp_path / "test_noop.py").write_text(SAYS_NOTHING)
    said = run_pytest(tmp_path, "-rs")
    assert "NotImplementedError: add_person: put a new person into the system" in said
    for hook in ("unreachable", "failing", "refusing"):
        assert f"not applicable: TestNoop has no {hook}()" in said


SCHEDULES = """
from datetime import UTC, datetime

from effaced.model import SubjectRef
from effaced.resolvers.protocols import Scheduled
from effaced.testing import RecordingResolver, ResolverConformance


class TestSchedules(ResolverConformance):
    def make_resolver(self):
        return RecordingResolver(lambda _: Scheduled(datetime(2026, 4, 1, tzinfo=UTC)))

    def add_person(self):
        return SubjectRef("person", "anna-1")

    def is_present(self, ref):
        return True
"""


@pytest.fixture(scope="module")
def schedules(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is said of a resolver that answers Scheduled, to an author who expects it to erase."""
    folder = tmp_path_factory.mktemp("author")
    (folder / "test_schedules.py").write_text(SCHEDULES)
    return run_pytest(folder)


def test_a_scheduled_answer_asks_for_the_tests_of_one(schedules: str) -> None:
    assert (
        "Failed: The resolver answered Scheduled: derive its tests from SchedulingConformance." in schedules
    )


def test_shows_the_values_of_a_failed_assertion(schedules: str) -> None:
    assert "where False = isinstance(Scheduled(until=datetime.datetime(2026, 4, 1" in schedules


def test_says_what_to_install_where_pytest_is_missing() -> None:
    # None in sys.modules is how Python itself says that a module can't be imported.
    code = "import sys; sys.modules['pytest'] = None; import effaced.testing"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].endswith(
        "effaced.testing needs pytest, which is not installed: pip install pytest"
    )


def test_the_reference_has_every_class_and_hook_and_no_other() -> None:
    page = REFERENCE.read_text(encoding="utf-8")
    assert [name for name in testing.__all__ if not re.search(rf"^\| `{name}\b", page, re.MULTILINE)] == []
    named = set(re.findall(r"^\| `([a-z_]+)\(", page, re.MULTILINE))
    hooks = {name for name, each in vars(Hooks).items() if inspect.isfunction(each) and name[0] != "_"}
    assert hooks - named == set()
    classes = [getattr(testing, name) for name in testing.__all__]
    assert [name for name in named if not any(hasattr(each, name) for each in classes)] == []
