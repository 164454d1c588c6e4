"""resolvers.yaml: what is read from it, and how a wrong one is refused."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from effaced.core.errors import ConfigurationError
from effaced.resolvers.http import HttpResolver, VerifyingHttp
from effaced.resolvers.load import load_registry
from effaced.resolvers.noop import NoopResolver
from effaced.resolvers.protocols import Limits

PAYMENT = """\
version: 1
resolvers:
  payment:
    kind: http
    ref: payment_customer
    base_url: https://${PAYMENT_HOST}
    erase: {method: delete, path: "/v1/customers/{ref}"}
    auth: {bearer: "${PAYMENT_TOKEN}"}
    gone: [404]
    verify: {method: GET, path: "/v1/customers/{ref}", absent: [404], present: [200]}
    scheduled: {status: [202], until: expires_at}
    canary: 4711
    timeout: 10
    concurrency: 8
    rate_per_second: 20
"""
ENVIRON = {"PAYMENT_HOST": "api.example", "PAYMENT_TOKEN": "s3cret"}


@pytest.fixture
def write(tmp_path):
    def write_it(text: str) -> Path:
        path = tmp_path / "resolvers.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write_it


@pytest.fixture
def problems(write):
    """The problems of a file, as `line: message`."""

    def load(text: str, environ=ENVIRON, **options) -> list[str]:
        path = write(text)
        with pytest.raises(ConfigurationError) as raised:
            load_registry(path, environ, **options)
        assert all(each.where.startswith(f"{path}:") for each in raised.value.problems)
        return [f"{each.where.rpartition(':')[2]}: {each.message}" for each in raised.value.problems]

    return load


def http(extra: str = "", **replaced: str) -> str:
    """A file with one good http resolver, one key replaced or lines added (from line 9 on)."""
    lines = {
        "ref": "person",
        "base_url": "https://api.example",
        "erase": '{method: DELETE, path: "/p/{ref}"}',
    } | replaced
    body = "".join(f"    {key}: {value}\n" for key, value in lines.items())
    return f"version: 1\nresolvers:\n  crm:\n    kind: http\n{body}{extra}"


def test_a_whole_block_is_read(write):
    payment = load_registry(write(PAYMENT), ENVIRON).get("payment")
    assert isinstance(payment.resolver, VerifyingHttp)
    assert (payment.verifies, payment.rectifies, payment.retention_only) == (True, False, False)
    assert (payment.ref, payment.kind, payment.canary) == ("payment_customer", "http", "4711")
    assert Limits(timedelta(seconds=10), 8, 20) == payment.limits
    assert payment.resolver.host == "api.example"


def test_what_is_left_out_has_a_default(write):
    crm = load_registry(write(http())).get("crm")
    assert isinstance(crm.resolver, HttpResolver)
    assert (crm.verifies, crm.rectifies, crm.retention_only) == (False, False, False)
    assert (Limits(), None) == (crm.limits, crm.canary)


def test_a_rectify_block_makes_it_correct_those_categories_and_no_others(write):
    extra = '    rectify: {path: "/p/{ref}", fields: {email: contact.mail, name: name}}\n'
    crm = load_registry(write(http(extra))).get("crm")
    assert (crm.rectifies, crm.fields) == (True, frozenset({"email", "name"}))


def test_what_a_system_holds_can_be_said_without_being_able_to_correct_it(write):
    assert load_registry(write(http())).get("crm").fields is None
    assert load_registry(write(http("    holds: []\n"))).get("crm").fields == frozenset()
    extra = '    holds: [phone]\n    rectify: {path: "/p/{ref}", fields: {email: mail}}\n'
    assert load_registry(write(http(extra))).get("crm").fields == frozenset({"email", "phone"})


def test_a_system_that_only_expires_needs_no_erase(write):
    text = """\
version: 1
resolvers:
  logs:
    kind: http
    ref: person
    base_url: https://api.example
    expires: {within_days: 30}
    verify: {path: "/p/{ref}", absent: [404], present: [200]}
"""
    logs = load_registry(write(text)).get("logs")
    assert (logs.retention_only, logs.verifies) == (True, True)


def test_a_manual_system_knows_what_to_tell_the_person(write):
    text = "version: 1\nresolvers: {archive: {kind: manual, ref: person, instructions: Shred the folder.}}\n"
    archive = load_registry(write(text)).get("archive")
    assert (archive.kind, archive.resolver.instructions) == ("manual", "Shred the folder.")
    assert (archive.retention_only, archive.rectifies) == (True, True)


def test_noop_needs_nothing(write):
    registry = load_registry(write("version: 1\nresolvers: {trial: {kind: noop, ref: person}}\n"))
    assert isinstance(registry.get("trial").resolver, NoopResolver)


def test_a_file_may_have_no_resolvers(write):
    assert len(load_registry(write("version: 1\nresolvers: {}\n"))) == 0


def test_secrets_are_in_no_repr(write):
    registry = load_registry(write(PAYMENT), ENVIRON)
    assert "s3cret" not in repr([*registry, registry.get("payment").resolver])


# --- wrong files -------------------------------------------------------------------------------------


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match=r"absent\.yaml: there is no such file"):
        load_registry(tmp_path / "absent.yaml")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(ConfigurationError, match="can't be read"):
        load_registry(tmp_path)


@pytest.mark.parametrize("text", ["", "- a\n", "hello\n"])
def test_a_file_without_keys_says_what_is_expected(problems, text):
    assert problems(text) == ["1: expected the keys `version: 1` and `resolvers:`"]


def test_what_is_no_yaml_is_refused_with_its_line_and_without_its_text(problems):
    found = problems("version: 1\nresolvers:\n  a: {token: 's3cret\n")
    assert len(found) == 1
    assert found[0].startswith("4: is not valid YAML")
    assert "s3cret" not in found[0]


def test_a_key_that_is_there_twice_is_refused(problems):
    text = "version: 1\nresolvers:\n  a: {kind: noop, ref: x}\n  a: {kind: noop, ref: y}\n"
    assert problems(text) == ["4: resolvers.a: already there in line 3"]


@pytest.mark.parametrize("version", ["2", "'1'", "", "true"])
def test_only_version_1_is_known(problems, version):
    assert problems(f"version: {version}\nresolvers: {{}}\n") == [
        "1: version: expected 1, the only version there is"
    ]


def test_resolvers_must_be_a_mapping_of_mappings(problems):
    assert problems("version: 1\nresolvers: []\n") == [
        "2: resolvers: expected a mapping of names to resolvers ({} for none)"
    ]
    assert problems("version: 1\nresolvers:\n  crm: http\n") == [
        "3: resolvers.crm: expected a mapping with `kind`, `ref` and more"
    ]


@pytest.mark.parametrize("name", ["CRM", "'a b'", "1a", "42", "a/b"])
def test_a_name_is_a_plain_small_word(problems, name):
    found = problems(f"version: 1\nresolvers:\n  {name}: {{kind: noop, ref: person}}\n")
    assert len(found) == 1
    assert "a name has small letters" in found[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            http("    concurency: 2\n"),
            "8: resolvers.crm.concurency: unknown key; did you mean 'concurrency'?",
        ),
        (
            http(erase='{methd: DELETE, method: DELETE, path: "/p/{ref}"}'),
            "7: resolvers.crm.erase.methd: unknown key; did you mean 'method'?",
        ),
        (
            http("    auth: {baerer: x, bearer: y}\n"),
            "8: resolvers.crm.auth.baerer: unknown key; did you mean 'bearer'?",
        ),
        (
            http("    auth: {zzz: x, bearer: y}\n"),
            "8: resolvers.crm.auth.zzz: unknown key; known: basic, bearer, header",
        ),
        (
            http().replace("version: 1", "verzion: 1\nversion: 1"),
            "1: verzion: unknown key; did you mean 'version'?",
        ),
    ],
)
def test_an_unknown_key_is_refused_with_the_closest_known_one(problems, text, expected):
    assert [expected] == problems(text)


def test_noop_refuses_keys_too(problems):
    found = problems("version: 1\nresolvers: {trial: {kind: noop, ref: person, base_url: x}}\n")
    assert len(found) == 1
    assert "resolvers.trial.base_url: unknown key" in found[0]


def test_all_problems_are_told_at_once(problems):
    text = """\
version: 3
resolvers:
  one:
    kind: htp
    ref: person
  two:
    kind: http
    ref: person
    base_url: ftp://x
    timeout: -1
    erase: {method: GET, path: "p/{email}"}
  three:
    kind: noop
"""
    lines = [each.split(": ")[:2] for each in problems(text)]
    assert lines == [
        ["1", "version"],
        ["4", "resolvers.one.kind"],
        ["10", "resolvers.two.timeout"],
        ["9", "resolvers.two.base_url"],
        ["11", "resolvers.two.erase.path"],
        ["11", "resolvers.two.erase.method"],
        ["12", "resolvers.three.ref"],
    ]


def test_an_unknown_kind_names_the_closest(problems):
    assert problems(http().replace("kind: http", "kind: htpp")) == [
        "4: resolvers.crm.kind: there is no kind 'htpp'; did you mean 'http'?"
    ]


def test_a_system_erases_or_expires_and_one_of_them_has_to_be_said(problems):
    text = "".join(line for line in http().splitlines(keepends=True) if not line.startswith("    erase:"))
    assert problems(text) == ["3: resolvers.crm: expected exactly one of erase, expires"]


@pytest.mark.parametrize("key", ["ref", "base_url"])
def test_what_is_required_is_named(problems, key):
    text = "".join(line for line in http().splitlines(keepends=True) if not line.startswith(f"    {key}:"))
    assert [f"3: resolvers.crm.{key}: is required"] == problems(text)


@pytest.mark.parametrize(
    "line",
    [
        "timeout: 0",
        "timeout: .inf",
        "timeout: soon",
        "concurrency: 0",
        "concurrency: 1.5",
        "rate_per_second: 0",
        "rate_per_second: .nan",
        "canary: ''",
    ],
)
def test_limits_outside_of_what_makes_sense_are_refused(problems, line):
    found = problems(http(f"    {line}\n"))
    assert len(found) == 1
    assert found[0].startswith(f"8: resolvers.crm.{line.split(':')[0]}: ")


def test_a_reference_the_data_map_lacks_is_refused(problems):
    assert problems(http(), refs=["persons", "other"]) == [
        "5: resolvers.crm.ref: the data map has no such reference under refs; did you mean 'persons'?"
    ]


def test_a_reference_the_data_map_has_is_fine(write):
    assert "crm" in load_registry(write(http()), refs=["person"])


# --- the environment ---------------------------------------------------------------------------------


@pytest.mark.parametrize("environ", [{}, {"CRM_TOKEN": ""}], ids=["missing", "empty"])
def test_a_missing_variable_is_named_with_its_key_and_only_once(problems, environ):
    text = http("    auth: {bearer: '${CRM_TOKEN}'}\n", base_url="${CRM_TOKEN}")
    assert problems(text, environ) == [
        "6: resolvers.crm.base_url: the environment variable CRM_TOKEN is not set or is empty",
        "8: resolvers.crm.auth.bearer: the environment variable CRM_TOKEN is not set or is empty",
    ]


@pytest.mark.parametrize("text", ["${}", "${1A}", "${A B}", "${CRM_TOKEN", "${A-x}"])
def test_a_malformed_variable_is_refused(problems, text):
    found = problems(http(f"    auth: {{bearer: '{text}'}}\n"), {"CRM_TOKEN": "x"})
    assert found == [
        "8: resolvers.crm.auth.bearer: expected ${NAME} with letters, digits and underscores in the name"
    ]


@pytest.mark.parametrize("secret", ["s3cret\n", "s3 cret\r\nHost: evil", "sécret", " s3cret"])
def test_a_secret_that_is_no_header_value_is_refused_without_repeating_it(problems, secret):
    found = problems(http("    auth: {bearer: '${CRM_TOKEN}'}\n"), {"CRM_TOKEN": secret})
    assert len(found) == 1
    assert found[0].startswith("8: resolvers.crm.auth.bearer: must be printable ASCII")
    assert secret.strip() not in found[0]


def test_a_value_from_the_environment_is_not_looked_at_again(write):
    path = write(http("    auth: {bearer: '${CRM_TOKEN}'}\n"))
    registry = load_registry(path, {"CRM_TOKEN": "${OTHER}{ref}"})
    assert isinstance(registry.get("crm").resolver, HttpResolver)


# --- http --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "people/{ref}",
        "https://evil.example/{ref}",
        "//evil.example/{ref}",
        "/a//{ref}",
        "/a/../{ref}",
        "/./{ref}",
        "/a?x={ref}",
        "/a#{ref}",
        "/a b/{ref}",
        "/é/{ref}",
        "/%zz/{ref}",
        "/{email}",
        "/{ref",
        "/{{ref}}",
        "/{}",
        "/{ref!r}",
        "/{ref.__class__}",
    ],
)
def test_a_path_that_is_not_a_plain_path_with_known_placeholders_is_refused(problems, path):
    found = problems(http(erase=f'{{method: DELETE, path: "{path}"}}'))
    assert len(found) == 1
    assert found[0].startswith("7: resolvers.crm.erase.path: ")


@pytest.mark.parametrize("part", ['query: {q: "{email}"}', 'json: {a: [{b: "{email}"}]}'])
def test_unknown_placeholders_are_refused_everywhere(problems, part):
    found = problems(http(erase=f'{{method: POST, path: "/p/{{ref}}", {part}}}'))
    assert len(found) == 1
    assert "unknown placeholder {email}; only {ref} and {key} can be filled in" in found[0]


def test_a_call_that_names_nobody_is_refused(problems):
    found = problems(http(erase="{method: DELETE, path: /people}"))
    assert found == [
        "7: resolvers.crm.erase: {ref} must stand in path, query or json: a call has to name its subject"
    ]


@pytest.mark.parametrize("method", ["GET", "HEAD", "TRACE", "'DELETE /x HTTP/1.1'"])
def test_an_erase_uses_a_method_that_changes_something(problems, method):
    found = problems(http(erase=f'{{method: {method}, path: "/p/{{ref}}"}}'))
    assert found[0].startswith("7: resolvers.crm.erase.method: ")


def test_a_read_back_cannot_use_a_method_that_deletes(problems):
    found = problems(http('    verify: {method: DELETE, path: "/p/{ref}", absent: [404], present: [200]}\n'))
    assert found[0].startswith("8: resolvers.crm.verify.method: ")


@pytest.mark.parametrize("missing", ["absent", "present"])
def test_a_read_back_declares_both_answers(problems, missing):
    declared = {"absent": "[404]", "present": "[200]"}
    del declared[missing]
    rest = ", ".join(f"{key}: {value}" for key, value in declared.items())
    found = problems(http(f'    verify: {{path: "/p/{{ref}}", {rest}}}\n'))
    assert [f"8: resolvers.crm.verify.{missing}: is required"] == found


def test_a_status_has_one_meaning(problems):
    assert (
        "both under absent and under present"
        in problems(http('    verify: {path: "/p/{ref}", absent: [404, 200], present: [200]}\n'))[0]
    )
    assert (
        "both under gone and under scheduled"
        in problems(http("    gone: [202]\n    scheduled: {status: [202], until: x}\n"))[0]
    )


def test_a_call_that_is_not_repeated_needs_a_read_back(problems):
    found = problems(http("    scheduled: {status: [202], until: x, repeat: false}\n"))
    assert "scheduled.repeat: false needs verify" in found[0]


@pytest.mark.parametrize("status", [100, 302, 401, 403, 408, 429, 500, 503, 600])
def test_a_status_that_means_trouble_cannot_mean_gone(problems, status):
    found = problems(http(f"    gone: [404, {status}]\n"))
    assert len(found) == 1
    assert "only 2xx and 4xx can be declared" in found[0]


@pytest.mark.parametrize(
    "url",
    [
        "api.example",
        "ftp://api.example",
        "https://",
        "https://u:p@api.example",
        "https://api.example?x=1",
        "https://api.example/#x",
        "'https://{ref}.example'",
        "'https://api.example/a b'",
        "'https://api.example:x'",
    ],
)
def test_a_base_url_is_a_plain_http_address(problems, url):
    found = problems(http(base_url=url))
    assert len(found) == 1
    assert found[0].startswith("6: resolvers.crm.base_url: ")


@pytest.mark.parametrize(
    "auth",
    [
        "{}",
        "{bearer: a, basic: {user: a, password: b}}",
        "{header: {name: Host, value: evil.example}}",
        "{header: {name: 'X Y', value: a}}",
        "{header: {name: X-Key}}",
        "{basic: {user: a}}",
        "secret",
    ],
)
def test_auth_is_one_complete_way(problems, auth):
    found = problems(http(f"    auth: {auth}\n"))
    assert len(found) == 1
    assert found[0].startswith("8: resolvers.crm.auth")


def test_an_anchor_that_holds_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "resolvers.yaml").write_text("version: 1\nresolvers: &all\n  again: *all\n")
    with pytest.raises(ConfigurationError, match="can't be used"):
        load_registry(tmp_path / "resolvers.yaml")
