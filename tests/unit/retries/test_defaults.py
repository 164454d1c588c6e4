"""Settings, policies, runners and the library agree on when to try again: the numbers stand in one module."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from effaced.core import retry_defaults as defaults
from effaced.core.config import Settings
from effaced.embed import Effaced
from effaced.retries.policy import EXECUTION, BackoffPolicy, RetryPolicy
from effaced.saga.runner import SagaRunner

EFFACED = Path(__file__).parents[3] / "effaced"


def default(function: Callable[..., Any], name: str) -> Any:
    return inspect.signature(function).parameters[name].default


def test_the_settings_and_the_policies_agree() -> None:
    settings = {name: field.default for name, field in Settings.model_fields.items()}
    assert settings["max_attempts"] == RetryPolicy().max_attempts == defaults.MAX_ATTEMPTS
    backoff = BackoffPolicy()
    assert settings["backoff_seconds"] == RetryPolicy().base_delay == backoff.base_delay.total_seconds()
    assert (
        settings["backoff_cap_seconds"]
        == RetryPolicy().max_backoff_delay
        == backoff.max_delay.total_seconds()
    )
    assert timedelta(days=settings["max_age_days"]) == RetryPolicy().max_age
    assert settings["lease_seconds"] == backoff.lease.total_seconds()


@pytest.mark.parametrize("function", [SagaRunner, Effaced.runner])
def test_whoever_makes_a_runner_gets_the_same(function: Callable[..., Any]) -> None:
    assert default(function, "max_attempts") == defaults.MAX_ATTEMPTS
    assert (
        default(function, "batch_size") == defaults.BATCH_SIZE == Settings.model_fields["batch_size"].default
    )


def test_a_runner_gives_up_when_a_policy_does() -> None:
    assert default(SagaRunner, "max_age") == RetryPolicy().max_age
    assert default(SagaRunner, "crash_limit") == Settings.model_fields["crash_limit"].default


def test_an_execution_waits_a_step_longer_after_every_try() -> None:
    waits = [EXECUTION.calculate_delay(attempt) for attempt in range(1, EXECUTION.max_attempts)]
    assert waits == [15, 30, 45, 60]


@pytest.mark.parametrize("path", ["core/config.py", "retries/policy.py", "saga/runner.py", "embed.py"])
def test_no_number_of_its_own_stands_in(path: str) -> None:
    text = (EFFACED / path).read_text(encoding="utf-8")
    names = "|".join(
        ("max_attempts", "max_age", "batch_size", "crash_limit", "backoff", "lease", "base_delay")
    )
    numbers = re.findall(rf"^\s+(?:{names})\w*: .* = (?:timedelta\(\w+=)?[\d_.]+\)?,?$", text, re.MULTILINE)
    assert numbers == []
