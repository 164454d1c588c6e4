"""Input of any size is refused by a cap or costs work in proportion to its size.

Nothing is timed here. Comparisons are counted where they can be; elsewhere the input is so large that work
in proportion to its square would not end.
"""

from __future__ import annotations

import base64
import json
import unicodedata
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from effaced.api.bodies import (
    MOST_POLICY_FIELDS,
    MOST_PROBLEMS,
    PolicyBody,
    RequestBody,
    read_body,
    without_repeated,
)
from flask import Flask, request
from sqlalchemy import types
from werkzeug.datastructures import MultiDict

from effaced.api.arguments import only
from effaced.console.redrives.view import _rows_seen
from effaced.core.errors import ConfigurationError, Problem, Refused
from effaced.core.http_clients import RETRY_AFTER_CAP, retry_after
from effaced.core.log import REDACTED, redact
from effaced.core.paging import decode
from effaced.core.strict import suggest
from effaced.core.yaml.file import read_yaml
from effaced.datamap.compile.corrections import UnsuitableValue, convert_value
from effaced.datamap.load.file import load_map
from effaced.datamap.model.last_day import parse_until
from effaced.datamap.run.masks import mask
from effaced.datamap.schema.tables import LiveColumn
from effaced.requests.identifiers import LONGEST, normalise
from effaced.resolvers.load import load_registry

MILLION = 1_000_000


class Name(str):
    """A name that counts how often it is compared with another."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)


def comparisons(number: int) -> int:
    Name.compared = 0
    without_repeated([(Name(f"name_{each}"), None) for each in range(number)])
    return Name.compared


def refused(body: object, model: type[RequestBody] | type[PolicyBody] = RequestBody) -> list[Problem]:
    app = Flask("test")
    data = body if isinstance(body, str) else json.dumps(body)
    with (
        app.test_request_context(method="POST", data=data, content_type="application/json"),
        pytest.raises(Refused) as error,
    ):
        read_body(request, model)
    return list(error.value.problems)


class TestBodies:
    def test_looking_for_repeated_names_compares_no_name_with_every_other(self) -> None:
        # Only names whose hashes collide are compared: far fewer than there are names.
        assert comparisons(1_000) < 1_000
        assert comparisons(20_000) < 20_000

    def test_a_name_that_is_there_twice_among_many_is_found(self) -> None:
        inner = ", ".join(f'"n{each}": 1' for each in range(20_000))
        body = f'{{"policy": {{"x": {{{inner}, "n7": 2}}}}}}'
        assert refused(body, PolicyBody) == [Problem("n7", "is there twice")]

    @pytest.mark.parametrize("field", ["retry", "policy"])
    def test_a_policy_of_very_many_fields_is_refused_by_its_name(self, field: str) -> None:
        fields = {f"max_attempt_{each}": 1 for each in range(MOST_POLICY_FIELDS + 1)}
        body = {"retry": fields, "kind": "erasure", "subject": {"id": "1"}} if field == "retry" else {}
        problems = refused(body or {"policy": fields}, RequestBody if body else PolicyBody)
        assert problems == [Problem(field, f"must have at most {MOST_POLICY_FIELDS} names")]

    def test_of_very_many_problems_the_first_are_named_and_the_others_counted(self) -> None:
        body = {"kind": "erasure", "subject": {"id": "1"}} | {f"x{each}": 1 for each in range(5_000)}
        problems = refused(body)
        assert len(problems) == MOST_PROBLEMS + 1
        assert problems[-1] == Problem("body", f"has {5_000 - MOST_PROBLEMS} more problems")
        twice = ", ".join(f'"n{each}": 1, "n{each}": 2' for each in range(5_000))
        assert len(refused(f'{{"policy": {{"x": {{{twice}}}}}}}', PolicyBody)) == MOST_PROBLEMS + 1

    @pytest.mark.parametrize("digits", [4_000, 5_000, 100_000])
    def test_a_number_of_very_many_digits_is_refused_or_kept_out_of_the_way(self, digits: int) -> None:
        app = Flask("test")
        data = f'{{"policy": {{"max_attempts": {"9" * digits}, "max_attempts": 1}}}}'
        with (
            app.test_request_context(method="POST", data=data, content_type="application/json"),
            pytest.raises(Exception) as error,
        ):
            read_body(request, PolicyBody)
        assert type(error.value).__name__ in ("Refused", "ApiProblem")


class TestQueries:
    def test_of_very_many_unknown_arguments_the_first_are_named(self) -> None:
        with pytest.raises(Refused) as error:
            only(MultiDict({f"a{each}": "1" for each in range(10_000)}), "status")
        assert len(error.value.problems) == 20

    @pytest.mark.parametrize("content", [b"[" * 3_000, b"[" * MILLION, b"1" * 6_000, b"1" * MILLION])
    def test_a_page_token_of_any_content_is_refused(self, content: bytes) -> None:
        with pytest.raises(Refused):
            decode(base64.urlsafe_b64encode(content).decode(), datetime, UUID)

    def test_a_version_of_very_many_digits_is_none(self) -> None:
        assert _rows_seen("9" * 5_000 + "-running") == 0
        assert _rows_seen("12-running") == 12


class TestTexts:
    def test_an_identifier_is_normalised_only_up_to_its_longest(self) -> None:
        accents = "\u0327\u0301"  # in the order that normalising would leave
        turned = accents[::-1]
        assert normalise("name", f"e{turned}") == normalise("name", f"e{accents}")
        long = "x" * LONGEST + turned
        assert normalise("name", long) == long != unicodedata.normalize("NFKC", long)
        assert len(normalise("name", "e" + turned * MILLION)) == 2 * MILLION + 1

    @pytest.mark.parametrize("text", ["a", "?", "@", "a@", "?a", "://", "bearer ", ".", "a@b."])
    def test_a_log_line_is_cleaned_in_one_pass(self, text: str) -> None:
        redact(None, "info", {"event": text * (MILLION // len(text))})

    def test_an_address_in_a_long_log_line_is_still_blanked(self) -> None:
        line = f"{'a' * 100_000} <anna@people.example> {'b' * 100_000}"
        cleaned = redact(None, "info", {"event": line})["event"]
        assert "anna" not in cleaned
        assert REDACTED in cleaned

    @pytest.mark.parametrize("text", ["@", "@.", "a@b.", ".a"])
    def test_a_value_is_masked_in_one_pass(self, text: str) -> None:
        assert len(mask(text * (MILLION // len(text)))) < 100

    def test_a_long_word_is_compared_with_no_other(self) -> None:
        assert suggest("max_attempt", ["max_attempts"]) == "; did you mean 'max_attempts'?"
        assert suggest("max_attempt" * MILLION, ["max_attempts"]) == "; known: max_attempts"

    def test_the_end_of_a_retention_has_a_longest_text(self) -> None:
        assert parse_until("issued_on + 10 years") is not None
        assert parse_until(f"issued_on{' ' * MILLION}+ 10 years") is None

    @pytest.mark.parametrize("value", ["9" * MILLION, "(" * MILLION, "Mon, " * 200_000])
    def test_a_retry_after_of_any_length_is_a_bounded_wait_or_none(self, value: str) -> None:
        assert retry_after(value) in (None, RETRY_AFTER_CAP)


class TestCorrectedNumbers:
    """A number may be short and yet stand for a thousand million digits."""

    @staticmethod
    def column(kind: types.TypeEngine[Any]) -> LiveColumn:
        return LiveColumn("balance", kind, nullable=False, generated=False)

    @pytest.mark.parametrize("kind", [types.Numeric(10, 2), types.Integer(), types.BigInteger()])
    @pytest.mark.parametrize("value", ["1e999999999", "-1e999999999", "1e-999999999", "9" * 10_000])
    def test_that_do_not_fit_are_refused(self, kind: types.TypeEngine[Any], value: str) -> None:
        with pytest.raises(UnsuitableValue):
            convert_value(self.column(kind), value, "postgresql")

    def test_too_large_for_a_floating_point_number_are_refused(self) -> None:
        with pytest.raises(UnsuitableValue):
            convert_value(self.column(types.Float()), "1e400", "postgresql")

    def test_of_more_digits_than_python_calculates_with_are_kept_whole(self) -> None:
        text = "12345678901234567890123456789012345.60"
        assert convert_value(self.column(types.Numeric(38, 2)), text, "postgresql") == Decimal(text)
        with pytest.raises(UnsuitableValue):
            convert_value(self.column(types.Numeric(38, 2)), text + "1", "postgresql")
        assert convert_value(self.column(types.Numeric(5, 2)), "100.0000", "postgresql") == 100
        for zero in ("0e50", "0.0000", "-0"):
            assert convert_value(self.column(types.Numeric(5, 2)), zero, "postgresql") == 0


class TestFiles:
    BOMB = "a: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"k{n}: &a{n + 1} [{', '.join([f'*a{n}'] * 10)}]\n" for n in range(9)
    )

    @pytest.fixture(params=["aliases of aliases", "an alias within itself"])
    def file(self, request: pytest.FixtureRequest, tmp_path: Path) -> Path:
        path = tmp_path / "file.yaml"
        path.write_text(self.BOMB if request.param == "aliases of aliases" else "a: &a\n  b: *a\n")
        return path

    def test_aliases_that_stand_for_billions_are_refused(self, file: Path) -> None:
        for read in (read_yaml, load_map, lambda path: load_registry(path, environ={})):
            with pytest.raises(ConfigurationError, match="too large"):
                read(file)

    def test_a_key_of_very_many_digits_is_a_problem_of_the_file(self, tmp_path: Path) -> None:
        path = tmp_path / "resolvers.yaml"
        for key in ("9" * 5_000, "²"):
            path.write_text(f"version: 1\nresolvers:\n  crm:\n    kind: noop\n    ref: crm\n    '{key}': 1\n")
            with pytest.raises(ConfigurationError):
                load_registry(path, environ={})
