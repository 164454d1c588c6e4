"""A subject's reference in an HTTP call: never more than a value, or no call at all."""

from __future__ import annotations

from urllib.parse import parse_qs

import pytest

from effaced.core.errors import ResolverError
from effaced.model import SubjectRef, new_id
from effaced.resolvers.http.templates import (
    check_path,
    check_template,
    fill_json,
    fill_path,
    fill_query,
    uses_ref,
    values_for,
)

KEY = new_id()


def values(ref: str) -> dict[str, str]:
    return dict(values_for(SubjectRef("crm", ref), KEY))


class TestChecking:
    @pytest.mark.parametrize("text", ["/v1/{ref}", "{key}", "no placeholder"])
    def test_known_placeholders_pass(self, text: str) -> None:
        assert check_template(text) == text

    @pytest.mark.parametrize("text", ["{email}", "{}", "{ref", "ref}", "{{ref}}"])
    def test_other_placeholders_and_stray_braces_are_refused(self, text: str) -> None:
        with pytest.raises(ValueError, match=r"placeholder|brace"):
            check_template(text)

    @pytest.mark.parametrize("path", ["v1/{ref}", "/v1//{ref}", "/v1/../{ref}", "/v1/{ref}?x=1", "/a b"])
    def test_a_path_that_could_mean_another_one_is_refused(self, path: str) -> None:
        with pytest.raises(ValueError, match="path"):
            check_path(path)


class TestFilling:
    @pytest.mark.parametrize(
        ("ref", "path"),
        [
            ("c-1", "/v1/c-1"),
            ("a/b", "/v1/a%2Fb"),
            ("50%", "/v1/50%25"),
            ("a?b#c", "/v1/a%3Fb%23c"),
            ("Zoë", "/v1/Zo%C3%AB"),
            ("{key}", "/v1/%7Bkey%7D"),
        ],
    )
    def test_a_reference_stays_within_its_segment(self, ref: str, path: str) -> None:
        assert fill_path("/v1/{ref}", values(ref)) == path

    @pytest.mark.parametrize("ref", [".", "..", "a/../b", "a\\..\\b"])
    def test_a_reference_that_would_change_the_path_is_refused(self, ref: str) -> None:
        with pytest.raises(ResolverError) as refused:
            fill_path("/v1/{ref}", values(ref))
        assert refused.value.code == "unsafe_ref"

    @pytest.mark.parametrize("ref", ["", "\ud800"])
    def test_a_reference_that_no_call_can_carry_is_refused(self, ref: str) -> None:
        with pytest.raises(ResolverError):
            values(ref)

    def test_a_query_is_encoded_and_adds_no_parameter(self) -> None:
        query = fill_query({"id": "{ref}", "key": "{key}"}, values("1&admin=true"))
        assert parse_qs(query) == {"id": ["1&admin=true"], "key": [str(KEY)]}

    def test_a_body_is_filled_at_any_depth_and_its_names_are_left_alone(self) -> None:
        body = {"{ref}": [{"id": "{ref}"}, 1, None]}
        assert fill_json(body, values("x")) == {"{ref}": [{"id": "x"}, 1, None]}


@pytest.mark.parametrize(
    ("template", "used"),
    [("/{ref}", True), ({"a": ["{ref}"]}, True), ({"{ref}": "a"}, False), (7, False), ("{key}", False)],
)
def test_whether_a_template_has_the_reference(template: object, used: bool) -> None:
    assert uses_ref(template) is used
