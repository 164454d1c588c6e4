"""P5: where a policy comes from, and what is said when it is wrong."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from effaced.breakers.model import BreakerRole
from effaced.breakers.policy import BreakerPolicies, BreakerPolicy, CallLimits
from effaced.breakers.policy_file import load_policies
from effaced.breakers.registry import BreakerRegistry
from effaced.breakers.stores.memory import MemoryBreakerStore
from effaced.core.errors import ConfigurationError

FILE = """
version: 1
defaults:
  fail_max: 4
  reset_timeout_s: 50
  roles:
    verify: {trial_calls: 2}
hosts:
  API.example:
    reset_timeout_s: 45
    roles:
      erase: {fail_max: 2}
resolvers:
  crm:
    fail_max: 3
    classify: {neutral_statuses: [501]}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "breakers.yaml"
    path.write_text(FILE)
    return path


def problems(path: Path, text: str) -> list[str]:
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load_policies(path)
    return [str(each).replace(str(path), "file") for each in caught.value.problems]


def test_with_no_file_the_built_in_policy_holds() -> None:
    policy = load_policies().for_resolver("crm")
    assert (
        policy.fail_max,
        policy.reset_timeout_s,
        policy.max_reset_timeout_s,
        policy.retry_after_cap_s,
        policy.success_threshold,
        policy.trial_calls,
        policy.rolling.enabled,
    ) == (5, 60, 900, 900, 1, 1, False)


class TestLayers:
    def test_defaults_then_host_or_resolver_then_role(self, path: Path) -> None:
        policies = load_policies(path)
        assert ((crm := policies.for_resolver("crm")).fail_max, crm.reset_timeout_s) == (3, 50)
        assert 501 in crm.classify.neutral_statuses
        assert 500 in crm.classify.failure_statuses
        assert policies.for_resolver("crm", BreakerRole.VERIFY).trial_calls == 2
        assert ((api := policies.for_host("api.EXAMPLE")).fail_max, api.reset_timeout_s) == (2, 45)
        assert policies.for_host("api.example", BreakerRole.RECTIFY).fail_max == 4
        assert policies.for_host("other.example").fail_max == 4

    def test_a_host_s_own_field_wins_over_a_role_s_default(self) -> None:
        tree = {
            "defaults": {"roles": {"verify": {"trial_calls": 2, "fail_max": 9}}},
            "hosts": {"api.example": {"trial_calls": 1}},
        }
        policy = BreakerPolicies(tree).for_host("api.example", BreakerRole.VERIFY)
        assert (policy.trial_calls, policy.fail_max) == (1, 9)

    def test_a_host_in_another_case_keeps_its_settings(self, path: Path) -> None:
        policies = load_policies(path, "hosts.api.EXAMPLE.trial_calls=3").replace(
            {"host:Api.Example": {"jitter_ms": 5}}
        )
        policy = policies.named("host:API.example", BreakerRole.ERASE)
        assert (policy.reset_timeout_s, policy.fail_max, policy.trial_calls, policy.jitter_ms) == (
            45,
            2,
            3,
            5,
        )

    def test_two_blocks_of_one_host_in_different_case_are_merged(self, path: Path) -> None:
        path.write_text("version: 1\nhosts:\n  A.example: {fail_max: 2}\n  a.EXAMPLE: {trial_calls: 4}\n")
        policy = load_policies(path).for_host("a.example")
        assert (policy.fail_max, policy.trial_calls) == (2, 4)

    def test_a_change_at_run_time_wins_over_the_file_s_roles(self) -> None:
        """What is reported as changed is in force, for every role."""
        tree = {"resolvers": {"crm": {"fail_max": 6, "roles": {"erase": {"fail_max": 7}}}}}
        policies = BreakerPolicies(tree).replace({"resolver:crm": {"fail_max": 3}})
        assert {policies.for_resolver("crm", role).fail_max for role in BreakerRole} == {3}

    def test_a_change_for_all_roles_wins_over_earlier_ones_for_a_role(self) -> None:
        roles = {
            "erase": {"fail_max": 5, "rolling": {"window_s": 9, "enabled": True}},
            "verify": {"fail_max": 6},
        }
        policies = BreakerPolicies(None, {"resolver:crm": {"roles": roles, "jitter_ms": 7}})
        changes = {"fail_max": 4, "rolling": {"window_s": 20}}
        ended = ("roles.erase.fail_max", "roles.erase.rolling.window_s", "roles.verify.fail_max")
        assert policies.replaced_by("resolver:crm", changes) == ended
        changed = policies.replace({"resolver:crm": changes})
        for role in BreakerRole:
            policy = changed.for_resolver("crm", role)
            assert (policy.fail_max, policy.rolling.window_s, policy.jitter_ms) == (4, 20, 7)
            assert policy.rolling.enabled is (role is BreakerRole.ERASE)

    def test_in_one_change_a_role_still_wins(self) -> None:
        changes = {"fail_max": 4, "roles": {"verify": {"fail_max": 2}}}
        policies = BreakerPolicies().replace({"resolver:crm": changes})
        assert policies.for_resolver("crm").fail_max == 4
        assert policies.for_resolver("crm", BreakerRole.VERIFY).fail_max == 2

    def test_a_change_in_this_process_for_all_roles_is_in_force_for_all(self) -> None:
        calls = BreakerRegistry(MemoryBreakerStore())
        calls.update_policy("resolver:crm", roles={"erase": {"fail_max": 5}})
        assert calls.update_policy("resolver:crm", fail_max=4).fail_max == 4

    def test_file_then_environment_then_command_line(self, path: Path) -> None:
        environment = (
            "defaults.fail_max=7, resolvers.crm.reset_timeout_s=20, hosts.api.example.roles.erase.fail_max=6"
        )
        policies = load_policies(
            path, environment, ["resolvers.crm.reset_timeout_s=10", "defaults.rolling.enabled=true"]
        )
        assert policies.for_resolver("mail").fail_max == 7
        assert (
            (crm := policies.for_resolver("crm")).fail_max,
            crm.reset_timeout_s,
            crm.rolling.enabled,
        ) == (3, 10, True)
        assert policies.for_host("api.example").fail_max == 6

    def test_overrides_at_run_time_come_last(self, path: Path) -> None:
        policies = load_policies(path).replace({"resolver:crm": {"fail_max": 9}, "defaults": {"fail_max": 8}})
        assert (policies.for_resolver("crm").fail_max, policies.for_resolver("mail").fail_max) == (9, 8)

    def test_they_are_asked_for_while_it_runs_and_wrong_ones_change_nothing(self) -> None:
        given: list[dict[str, dict[str, object]]] = [{"resolver:crm": {"fail_max": 9}}]
        calls = BreakerRegistry(MemoryBreakerStore(), overrides=lambda: given[0])
        assert calls.policy("resolver:crm").fail_max == 9
        given[0] = {"resolver:crm": {"fail_max": 0}}
        calls.refresh_policies()
        assert calls.policy("resolver:crm").fail_max == 9
        given[0] = {}
        calls.refresh_policies()
        assert calls.policy("resolver:crm").fail_max == 5

    def test_limits_are_asked_for_without_overrides_too(self) -> None:
        limits = {"crm": CallLimits(timedelta(seconds=10), max_attempts=3)}
        calls = BreakerRegistry(MemoryBreakerStore(), limits=lambda: limits)
        assert calls.policy("resolver:crm").fail_max == 2


class TestRefused:
    def test_unknown_keys_by_name_with_the_closest_known_one(self, path: Path) -> None:
        said = problems(
            path,
            "version: 1\n"
            "default: {}\n"
            "resolvers:\n"
            "  crm: {failmax: 3}\n"
            "hosts:\n"
            "  a.b.example:\n"
            "    rolling: {windows_s: 3}\n"
            "    roles:\n"
            "      erasing: {fail_max: 2}\n",
        )
        assert said == [
            "file:2: default: unknown key; did you mean 'defaults'?",
            "file:9: hosts.a.b.example.roles.erasing: there is no such role; did you mean 'erase'?",
        ]
        said = problems(
            path,
            "version: 1\n"
            "resolvers:\n"
            "  crm: {failmax: 3}\n"
            "hosts:\n"
            "  a.b.example:\n"
            "    rolling: {windows_s: 3}\n",
        )
        assert said == [
            "file:6: hosts.a.b.example.rolling.windows_s: unknown key; did you mean 'window_s'?",
            "file:3: resolvers.crm.failmax: unknown key; did you mean 'fail_max'?",
        ]

    @pytest.mark.parametrize(
        ("fields", "where"),
        [
            ("fail_max: 0", "defaults.fail_max"),
            ("fail_max: many", "defaults.fail_max"),
            ("reset_timeout_s: -1", "defaults.reset_timeout_s"),
            ("success_threshold: 0", "defaults.success_threshold"),
            ("jitter_ms: 60001", "defaults.jitter_ms"),
            ("roles: {erase: {trial_calls: 0}}", "defaults.roles.erase.trial_calls"),
            ("rolling: {threshold_failures: 1}", "defaults.rolling.threshold_failures"),
            ("classify: {failure_statuses: [99]}", "defaults.classify.failure_statuses"),
            ("classify: {failure_statuses: 500}", "defaults.classify.failure_statuses"),
            # In full it would fill the memory.
            ("classify: {failure_statuses: [100-999999999999]}", "defaults.classify.failure_statuses"),
        ],
    )
    def test_a_bound_by_the_field_s_name(self, path: Path, fields: str, where: str) -> None:
        (said,) = problems(path, f"version: 1\ndefaults:\n  {fields}\n")
        assert said.startswith(f"file:3: {where}: ")

    def test_a_wait_above_its_own_cap(self, path: Path) -> None:
        (said,) = problems(path, "version: 1\nresolvers:\n  crm: {reset_timeout_s: 901}\n")
        assert "resolvers.crm" in said
        assert "reset_timeout_s must be at most max_reset_timeout_s" in said

    @pytest.mark.parametrize("text", ["[]", "version: 2", "version: 1\nhosts: []", "version: 1\ndefaults: 3"])
    def test_a_file_of_another_shape(self, path: Path, text: str) -> None:
        assert problems(path, text)

    @pytest.mark.parametrize(
        ("override", "said"),
        [
            ("defaults.failmax=3", "fail_max"),
            ("resolver.crm.fail_max=3", "resolvers"),
            ("defaults.fail_max", "scope.name.key=value"),
            ("resolvers.fail_max=3", "unknown key"),
        ],
    )
    def test_an_override_by_its_name(self, override: str, said: str) -> None:
        with pytest.raises(ConfigurationError) as caught:
            load_policies(environment=override)
        assert "EFFACED_BREAKER_OVERRIDES" in str(caught.value)
        assert said in str(caught.value)

    def test_an_override_s_bound_by_its_field(self) -> None:
        with pytest.raises(ConfigurationError, match=r"resolvers\.crm\.fail_max"):
            load_policies(overrides=["resolvers.crm.fail_max=0"])


def test_a_stuck_timeout_that_a_call_can_outlive_is_refused() -> None:
    tree = {"resolvers": {"crm": {"stuck_timeout_s": 60}}}
    BreakerPolicies(tree, limits={"crm": CallLimits(timedelta(seconds=29), 8)}).require_fit()
    limits = {"crm": CallLimits(timedelta(seconds=31), 8), "mail": CallLimits(timedelta(seconds=30), 8)}
    with pytest.raises(ConfigurationError, match=r"resolvers\.crm\.stuck_timeout_s: must be over 62"):
        BreakerPolicies(tree, limits=limits).require_fit()


def test_attempts_limited_at_run_time_lower_fail_max_and_the_limits_of_the_files_are_checked() -> None:
    """A breaker opens before one entry has used up its attempts."""
    policies = BreakerPolicies(limits={"crm": CallLimits(timedelta(seconds=10), 4)})
    assert (policies.for_resolver("crm").fail_max, policies.for_resolver("mail").fail_max) == (3, 5)
    with pytest.raises(ConfigurationError, match=r"resolvers\.crm\.fail_max: must be under its 4 attempts"):
        policies.require_fit()


def test_a_policy_is_frozen_and_its_copy_is_checked() -> None:
    policy = BreakerPolicy()
    assert policy.replace(fail_max=2, rolling={"enabled": True}).rolling.enabled
    with pytest.raises(ConfigurationError, match="fail_max"):
        policy.replace(fail_max=0)
    with pytest.raises(ValueError, match="frozen"):
        policy.fail_max = 1  # type: ignore[misc]


def test_how_many_failures_open_a_breaker_is_one_number_only_if_every_role_has_it() -> None:
    policies = BreakerPolicies(
        {"defaults": {"fail_max": 7}, "resolvers": {"mail": {"roles": {"verify": {"fail_max": 3}}}}}
    )
    assert policies.opens_at("resolver:crm") == 7
    assert policies.opens_at("resolver:mail") is None
