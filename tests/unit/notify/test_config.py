"""notify.yaml: what it can say, and every mistake at once with its line, no secret shown."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from effaced.core.errors import ConfigurationError, NotFound
from effaced.model import NoticeType
from effaced.notify.config import load_targets

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
ENVIRON = {
    "ONCALL_SECRET": SECRET,
    "ONCALL_URL": "https://hooks.example/T0/hidden-token",
    "SMTP_PASSWORD": "hunter2",
}
GOOD = """
version: 1
targets:
  oncall:
    kind: webhook
    url: "${ONCALL_URL}"
    secret: "${ONCALL_SECRET}"
    events: [entry.abandoned, execution.failed]
    timeout: 5
  officers:
    kind: email
    smtp: {host: smtp.company.example, user: effaced, password: "${SMTP_PASSWORD}"}
    from: effaced@company.example
    to: [privacy@company.example]
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "notify.yaml"


def problems(path: Path, text: str) -> list[str]:
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load_targets(path, ENVIRON)
    return [str(problem).removeprefix(f"{path}:") for problem in caught.value.problems]


def test_a_file_names_its_targets_in_order(path: Path) -> None:
    path.write_text(GOOD)
    targets = load_targets(path, ENVIRON)
    assert [(each.name, each.kind, each.timeout.seconds) for each in targets] == [
        ("oncall", "webhook", 5),
        ("officers", "email", 10),
    ]
    assert targets.named("oncall").where == "https://hooks.example"
    assert targets.named("officers").where == "1 person by way of smtp.company.example"


def test_with_no_events_a_system_gets_what_is_always_written_and_people_what_needs_them(path: Path) -> None:
    path.write_text(GOOD.replace("    events: [entry.abandoned, execution.failed]\n", ""))
    targets = load_targets(path, ENVIRON)
    usual = frozenset(each for each in NoticeType if not each.is_on_demand) - {NoticeType.TEST}
    assert targets.named("oncall").events == usual
    assert targets.named("officers").events == usual - {NoticeType.REQUEST_COMPLETED}


def test_nobody_can_subscribe_to_test_messages(path: Path) -> None:
    found = problems(path, GOOD.replace("entry.abandoned", "notify.test"))
    assert any("effaced notify test" in each for each in found)


def test_a_target_that_is_not_there_is_refused_with_the_closest(path: Path) -> None:
    path.write_text(GOOD)
    with pytest.raises(NotFound, match="did you mean 'oncall'"):
        load_targets(path, ENVIRON).named("on-call")


def test_all_mistakes_are_told_at_once_each_with_its_line(path: Path) -> None:
    found = problems(
        path,
        """version: 1
targets:
  oncall:
    kind: webhook
    url: ftp://hooks.example
    secret: whsec_short
    event: [entry.abandoned]
  pager:
    kind: webhok
  officers:
    kind: email
    smtp: {host: smtp.company.example, user: effaced, password: "${NO_SUCH}"}
    from: "Effaced <effaced@company.example>"
    to: []
    events: [entry.abandonned]
""",
    )
    told = {int(line): said for line, _, said in (each.partition(": ") for each in found)}
    expected = {
        5: "targets.oncall.url: expected https://host/path",
        6: "targets.oncall.secret: expected whsec_",
        7: "targets.oncall.event: unknown key; did you mean 'events'?",
        9: "targets.pager.kind: there is no such kind; did you mean 'webhook'?",
        12: "the environment variable NO_SUCH is not set",
        13: "targets.officers.from: expected one plain address",
        14: "targets.officers.to: List should have at least 1 item",
        15: "targets.officers.events.0: Input should be 'entry.abandoned'",
    }
    assert len(found) == len(expected)
    assert [line for line, part in expected.items() if part not in told.get(line, "")] == []


def test_a_password_in_the_clear_is_refused(path: Path) -> None:
    (said,) = problems(path, GOOD.replace("{host:", "{security: none, host:"))
    assert "a password needs security: starttls or tls" in said


@pytest.mark.parametrize(
    "address",
    [
        "a@b.example\\nBcc: eve@evil.example",
        "a@b.example, eve@evil.example",
        "<a@b.example>",
        "a b@c.example",
        "@b",
    ],
)
def test_an_address_that_is_more_than_one_is_refused(path: Path, address: str) -> None:
    (said,) = problems(path, GOOD.replace("[privacy@company.example]", f'["{address}"]'))
    assert "expected one plain address" in said


@pytest.mark.parametrize(
    "url",
    [
        "https://user:pw@hooks.example/",
        "https://",
        "hooks.example",
        "https://hooks.example/#x",
        "https://h/ a",
    ],
)
def test_an_address_of_a_system_that_can_not_be_called_is_refused(path: Path, url: str) -> None:
    (said,) = problems(path, GOOD.replace('"${ONCALL_URL}"', f'"{url}"'))
    assert "targets.oncall.url: expected https://host/path" in said


def test_no_secret_is_shown_whatever_is_wrong(path: Path) -> None:
    spoiled = GOOD.replace("timeout: 5", "timeout: -1").replace(
        "kind: email", "kind: email\n    colour: blue"
    )
    path.write_text(spoiled)
    with pytest.raises(ConfigurationError) as caught:
        load_targets(path, ENVIRON | {"ONCALL_SECRET": "whsec_notbase64!"})
    said = f"{caught.value} {caught.value!r} {caught.value.__context__}"
    assert "targets.oncall.secret" in said
    assert not any(secret in said for secret in ("notbase64", "hidden-token", "hunter2"))


def test_targets_show_no_secret(path: Path) -> None:
    path.write_text(GOOD)
    shown = repr(load_targets(path, ENVIRON).all) + repr(
        [each.config for each in load_targets(path, ENVIRON)]
    )  # type: ignore[attr-defined]
    assert not any(secret in shown for secret in (SECRET, "hidden-token", "hunter2"))
