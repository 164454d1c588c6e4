"""Settings: where they come from, and what is said when one is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from effaced.core.config import is_set, load_settings, unknown_variables
from effaced.core.crypto import new_key
from effaced.core.errors import ConfigurationError


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    import os

    for name in list(os.environ):
        if name.startswith("EFFACED_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EFFACED_KEYS", new_key())
    return monkeypatch


def test_defaults_need_only_a_key() -> None:
    assert load_settings().lease_seconds == 300


def test_the_environment_wins_over_the_file(clean: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "effaced.toml").write_text("batch_size = 7\nmax_attempts = 3\n")
    clean.setenv("EFFACED_BATCH_SIZE", "9")
    settings = load_settings()
    assert (settings.batch_size, settings.max_attempts) == (9, 3)


@pytest.mark.parametrize(
    "written", ['"local_execution=2, message=0.5"', "{local_execution = 2, message = 0.5}"]
)
def test_hours_by_domain_are_words_or_in_the_file_a_table(tmp_path: Path, written: str) -> None:
    (tmp_path / "effaced.toml").write_text(f"dead_letter_hours = {written}\n")
    assert load_settings().dead_letter_hours == {"local_execution": 2.0, "message": 0.5}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("EFFACED_LEASE_SECONDS", "soon", "valid integer"),
        ("EFFACED_LEASE_SECONDS", "5", "greater than or equal to 10"),
        ("EFFACED_LOG_LEVEL", "chatty", "'debug', 'info', 'warning' or 'error'"),
        ("EFFACED_TIME_ZONE", "Mars/Olympus", "IANA"),
        ("EFFACED_REDIS_URL", "hunter2@redis", "redis://"),
        ("EFFACED_REDIS_URL", "redis://h:abc", "redis://"),
        ("EFFACED_DEAD_LETTER_HOURS", "soon", "domain=hours"),
        ("EFFACED_DEAD_LETTER_HOURS", "message=1,message=2", "each domain once"),
        ("EFFACED_DEAD_LETTER_HOURS", "letters=2", "external_call, verification, local_execution"),
        ("EFFACED_DEAD_LETTER_HOURS", "message=", "above 0, up to 8760"),
        ("EFFACED_DEAD_LETTER_HOURS", "message=0", "above 0, up to 8760"),
        ("EFFACED_DEAD_LETTER_HOURS", "message=nan", "above 0, up to 8760"),
        ("EFFACED_DEAD_LETTER_HOURS", "message=8761", "above 0, up to 8760"),
    ],
)
def test_a_wrong_value_names_the_key_and_what_is_allowed(
    clean: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    clean.setenv(name, value)
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert name in str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("EFFACED_DATABASE_URL", "mysql://root:hunter2@db/x"),
        ("EFFACED_KEYS", "k1:hunter2"),
        ("EFFACED_REDIS_URL", "hunter2"),
        ("EFFACED_TIME_ZONE", "hunter2"),
        ("EFFACED_BATCH_SIZE", "hunter2"),
        ("EFFACED_METRICS_TOKEN", "hunter2"),
        ("EFFACED_DEAD_LETTER_HOURS", "message=hunter2"),
    ],
)
def test_a_wrong_value_is_never_shown(clean: pytest.MonkeyPatch, name: str, secret: str) -> None:
    clean.setenv(name, secret)
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert name in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_all_wrong_values_are_told_at_once(clean: pytest.MonkeyPatch) -> None:
    clean.setenv("EFFACED_LEASE_SECONDS", "x")
    clean.setenv("EFFACED_BATCH_SIZE", "y")
    clean.setenv("EFFACED_KEYS", "k1:short")
    clean.setenv("EFFACED_DATABASE_URL", "mysql://x/y")
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert {problem.where for problem in caught.value.problems} == {
        "EFFACED_LEASE_SECONDS",
        "EFFACED_BATCH_SIZE",
        "EFFACED_KEYS",
        "EFFACED_DATABASE_URL",
    }


def test_a_backoff_above_its_cap_names_both(clean: pytest.MonkeyPatch) -> None:
    clean.setenv("EFFACED_BACKOFF_SECONDS", "60")
    clean.setenv("EFFACED_BACKOFF_CAP_SECONDS", "30")
    with pytest.raises(
        ConfigurationError, match="EFFACED_BACKOFF_SECONDS must be at most EFFACED_BACKOFF_CAP"
    ):
        load_settings()


def test_an_empty_name_of_the_file_means_the_usual_one(clean: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "effaced.toml").write_text("batch_size = 7\n")
    clean.setenv("EFFACED_CONFIG", "")
    assert load_settings().batch_size == 7


def test_a_missing_key_says_how_to_make_one(clean: pytest.MonkeyPatch) -> None:
    clean.delenv("EFFACED_KEYS")
    with pytest.raises(ConfigurationError, match="effaced keys new"):
        load_settings()


def test_an_unknown_key_in_the_file_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    (tmp_path / "effaced.toml").write_text("batchsize = 7\n")
    with pytest.raises(ConfigurationError, match="did you mean batch_size"):
        load_settings()


def test_a_file_that_is_no_toml_says_where(tmp_path: Path) -> None:
    (tmp_path / "effaced.toml").write_text("batch_size = = 7\n")
    with pytest.raises(ConfigurationError, match=r"effaced.toml.*line 1"):
        load_settings()


@pytest.mark.parametrize("content", [b"batch_size = = 7\n", b"batchsize = 7\n", b"\xff\xfe"])
def test_what_is_wrong_with_a_named_file_is_said_of_that_file(
    clean: pytest.MonkeyPatch, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "staging.toml").write_bytes(content)
    clean.setenv("EFFACED_CONFIG", "staging.toml")
    with pytest.raises(ConfigurationError) as refused:
        load_settings()
    assert "staging.toml: " in str(refused.value)
    assert "effaced.toml" not in str(refused.value)


def test_a_named_file_that_is_missing_is_refused(clean: pytest.MonkeyPatch) -> None:
    clean.setenv("EFFACED_CONFIG", "nowhere.toml")
    with pytest.raises(ConfigurationError, match="does not exist"):
        load_settings()


def test_a_setting_counts_as_set_wherever_it_is(clean: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert not is_set("database_url")
    (tmp_path / "effaced.toml").write_text('database_url = "sqlite:///x.db"\n')
    assert is_set("database_url")
    assert is_set("keys")


def test_a_misspelt_variable_is_noticed() -> None:
    assert unknown_variables({"EFFACED_DATABSE_URL": "x", "EFFACED_TEST_REDIS_URL": "y", "PATH": "z"}) == [
        "EFFACED_DATABSE_URL is not a setting; did you mean EFFACED_DATABASE_URL?"
    ]
