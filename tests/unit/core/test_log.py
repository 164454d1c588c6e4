"""Logs hold nothing personal and nothing secret."""

from __future__ import annotations

import subprocess
import sys

import pytest
from structlog.testing import capture_logs

from effaced.core.log import REDACTED, configure, exception_without_values, get_logger, redact


@pytest.mark.parametrize(
    "key", ["password", "authorization", "email", "subject_id", "api_key", "X_Token", "value"]
)
def test_telling_keys_are_blanked(key: str) -> None:
    assert redact(None, "info", {key: "anna"}) == {key: REDACTED}


@pytest.mark.parametrize(
    "value",
    [
        "mail to anna@people.example failed",
        "Bearer eff_abc_def",
        "postgresql://user:secret@db/x",
        ["a@b.example"],
    ],
)
def test_telling_shapes_are_blanked_anywhere(value: object) -> None:
    cleaned = str(redact(None, "info", {"event": value}))
    assert REDACTED in cleaned
    assert not any(word in cleaned for word in ("anna", "eff_abc", "secret", "a@b"))


@pytest.mark.parametrize(
    "value",
    [
        ValueError("anna@people.example"),
        {"anna@people.example"},
        b"anna@people.example",
        "GET /x?api_key=anna",
    ],
)
def test_values_of_any_type_are_looked_at(value: object) -> None:
    assert "anna" not in str(redact(None, "info", {"event": value}))


@pytest.mark.parametrize(
    "key", ["emails", "tokens", "secret_key", "phone_number", "subject", "email_address"]
)
def test_longer_and_plural_keys_are_blanked_too(key: str) -> None:
    assert redact(None, "info", {key: "anna"}) == {key: REDACTED}


def test_a_password_with_an_at_sign_is_blanked_whole() -> None:
    assert "cret" not in str(redact(None, "info", {"event": "postgresql://user:se@cret@db/x"}))


def test_ordinary_words_stay() -> None:
    event = {"event": "drained", "resolver": "crm", "settled": 3}
    assert redact(None, "info", dict(event)) == event


def test_an_exception_is_its_class_and_places_never_its_message() -> None:
    try:
        raise ValueError("anna@people.example")
    except ValueError:
        told = exception_without_values(None, "error", {"event": "x", "exc_info": True})
    assert told["error"] == "ValueError"
    assert "anna" not in str(told)
    assert any("test_log.py" in place for place in told["trace"])


def test_a_logger_follows_when_logging_is_set_up_again() -> None:
    configure()
    logger = get_logger("effaced.tests.again")
    logger.info("first_use")
    configure()
    with capture_logs() as entries:
        logger.error("seen")
    assert [each["event"] for each in entries] == ["seen"]


def test_a_command_says_nothing_of_the_libraries_that_it_loads() -> None:
    """Libraries log at import, too, and a command imports what it needs after logging is set up."""
    command = "from effaced.core.log import configure; configure(fmt='text'); import effaced.runtime"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout + done.stderr == ""
