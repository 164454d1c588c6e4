"""`Idempotency-Key`, for whatever is posted: one effect and one answer, kept without what is shown once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier
from typing import Any

import loopback
import pytest
from flask import Blueprint, Flask
from served import PATIENCE, served
from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError

from effaced.accounts.scopes import Scope
from effaced.api.models import Answer, Body, Query
from effaced.api.operations import problems, version
from effaced.api.operations.call import Call, Reply
from effaced.api.operations.declare import Routes
from effaced.api.operations.run import view_of
from effaced.app import configure
from effaced.audit.notes import write_note
from effaced.audit.tables import AuditEvent, Note
from effaced.core.errors import Conflict, NotFound, Refused, Unavailable
from effaced.requests.tables import IdempotentAnswer, Request

from .conftest import Api

MANY = 50


class Thing(Body):
    name: str
    parts: dict[str, int] | None = None


class Which(Query):
    part: str | None = None


class Made(Answer):
    name: str
    secret: str | None


routes = Routes("Things", "/api/v1/things", about="For these tests.")
failures: dict[str, Exception] = {
    "refused": Refused("no"),
    "conflict": Conflict("no"),
    "not-found": NotFound("no"),
    "unavailable": Unavailable("no"),
    "broken": KeyError("no"),
    "constraint": IntegrityError("INSERT", {}, Exception("no")),
}
done: list[str] = []


def write(call: Call) -> None:
    write_note(call.session, call.keyring, "done", author=call.actor, request_id=None)


@routes.post(scope=Scope.REQUESTS_WRITE, status=201, secrets=("secret",))
def make_thing(call: Call, body: Thing) -> Reply[Made]:
    """Make a thing."""
    write(call)
    call.after_commit(lambda: done.append(body.name))
    if body.name in failures:
        raise failures[body.name]
    return Reply(Made(name=body.name, secret="s3cret"), headers={"Location": "/api/v1/things/1"})


@routes.post("/<thing_id>/turn", scope=Scope.REQUESTS_WRITE)
def turn_thing(call: Call, thing_id: str, query: Which) -> None:
    """Turn a thing."""
    write(call)


@pytest.fixture
def api(make_api: Callable[..., Api], migrated_url: str) -> Api:
    """An API with the operations above."""
    made = make_api(migrated_url)
    app, blueprint = Flask("test"), Blueprint("api", __name__)
    configure(app, made.runtime)
    problems.register(app, blueprint)
    version.register(app)
    for each in routes:
        blueprint.add_url_rule(each.rule, each.id, view_of(each), methods=[each.method])
    app.register_blueprint(blueprint)
    done.clear()
    return Api(app, made.runtime, made.key, made.token)


def post(
    api: Api, path: str = "", body: Any = None, key: str | None = "a-1", token: str | None = None
) -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    return api.call("POST", f"/api/v1/things{path}", json=body, headers=headers, token=token)


def notes(api: Api) -> int:
    with api.runtime.db.read() as session:
        return session.scalar(select(func.count()).select_from(Note)) or 0


def test_the_same_call_has_one_effect_and_the_same_answer_but_for_what_is_shown_once(api: Api) -> None:
    first = post(api, body={"name": "a"})
    again = post(api, body={"name": "a"})
    assert (first.status_code, first.get_json()) == (201, {"name": "a", "secret": "s3cret"})
    assert (again.status_code, again.get_json()) == (201, {"name": "a", "secret": None})
    assert first.text.replace('"s3cret"', "null") == again.text
    assert first.headers["Location"] == again.headers["Location"] == "/api/v1/things/1"
    assert (first.headers.get("Idempotent-Replay"), again.headers["Idempotent-Replay"]) == (None, "true")
    assert (notes(api), done) == (1, ["a"])


def test_what_is_shown_once_is_nowhere_in_the_database(api: Api) -> None:
    post(api, body={"name": "a"})
    assert "s3cret" not in api.everything()


def test_an_answer_without_content_is_replayed_without_content(api: Api) -> None:
    first, again = post(api, "/1/turn"), post(api, "/1/turn")
    assert (first.status_code, first.data) == (again.status_code, again.data) == (204, b"")
    assert first.content_type == again.content_type
    assert again.headers["Idempotent-Replay"] == "true"
    assert notes(api) == 1


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("", {"name": "b"}),
        ("", {"name": "a", "parts": {}}),
        ("", {"name": "a", "parts": {"x": 1}}),
        ("/1/turn", None),
        ("/1/turn?part=a", None),
    ],
)
def test_one_key_for_another_call_is_a_conflict(api: Api, path: str, body: Any) -> None:
    post(api, body={"name": "a"})
    answer = post(api, path, body)
    assert api.problem(answer) == (409, "idempotency-key-reused", {})
    assert notes(api) == 1


@pytest.mark.parametrize("other", ["/2/turn", "/1/turn?part=a"])
def test_path_and_query_make_another_call(api: Api, other: str) -> None:
    assert post(api, "/1/turn").status_code == 204
    assert api.problem(post(api, other))[1] == "idempotency-key-reused"


def test_the_order_of_names_makes_no_other_call(api: Api) -> None:
    first = post(api, body={"name": "a", "parts": {"x": 1, "y": 2}})
    again = post(api, body={"parts": {"y": 2, "x": 1}, "name": "a"})
    assert (first.status_code, again.status_code) == (201, 201)
    assert notes(api) == 1


@pytest.mark.parametrize("failure", failures)
def test_a_call_that_failed_is_not_remembered_and_has_no_effect(api: Api, failure: str) -> None:
    assert post(api, body={"name": failure}).status_code >= 400
    assert post(api, body={"name": failure}).headers.get("Idempotent-Replay") is None
    assert (notes(api), done) == (0, [])
    assert post(api, body={"name": "a"}).status_code == 201, "the key is free"


def test_a_constraint_that_is_no_race_is_an_error_of_ours_and_not_tried_again(
    api: Api, logs: list[Any]
) -> None:
    assert api.problem(post(api, body={"name": "constraint"}))[:2] == (500, "internal")
    assert "call_raced" not in [entry["event"] for entry in logs]


def test_a_key_is_its_owner_s_only(api: Api) -> None:
    other = api.new_key("crm")
    assert post(api, body={"name": "a"}).status_code == 201
    theirs = post(api, body={"name": "b"}, token=other)
    assert (theirs.status_code, theirs.headers.get("Idempotent-Replay")) == (201, None)
    assert notes(api) == 2


def test_without_a_key_every_call_counts(api: Api) -> None:
    answers = [post(api, body={"name": "a"}, key=None) for _ in range(2)]
    assert [answer.get_json()["secret"] for answer in answers] == ["s3cret"] * 2
    assert notes(api) == 2
    with api.runtime.db.read() as session:
        assert session.scalars(select(IdempotentAnswer)).all() == []


def test_a_key_that_lost_its_scope_gets_no_replay(api: Api) -> None:
    post(api, body={"name": "a"})
    with api.runtime.db.begin() as session:
        session.get_one(type(api.key), api.key.id).scopes = [Scope.REQUESTS_READ]
    assert post(api, body={"name": "a"}).status_code == 403


def test_what_comes_after_the_commit_may_fail(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(list[str]):
        def append(self, _: str) -> None:
            raise OSError("no space left")

    monkeypatch.setitem(globals(), "done", Full())
    first, again = post(api, body={"name": "a"}), post(api, body={"name": "a"})
    assert (first.status_code, again.status_code) == (201, 201)
    assert notes(api) == 1


def test_fifty_at_once_over_http_create_one_request(
    make_api: Callable[..., Api], migrated_url: str, tmp_path: Path
) -> None:
    api = make_api(migrated_url, approvals_needed=0)
    body, headers = api.erasure("4"), {**api.headers(), "Idempotency-Key": "one-key"}
    start = Barrier(MANY)

    def send(client: Any) -> Any:
        start.wait(timeout=PATIENCE)
        return client.post("/api/v1/requests", json=body, headers=headers)

    with (
        served(api.runtime.settings, tmp_path, "--workers", "2") as address,
        ExitStack() as stack,
        ThreadPoolExecutor(MANY) as pool,
    ):
        clients = [
            stack.enter_context(loopback.client(base_url=address, timeout=PATIENCE)) for _ in range(MANY)
        ]
        answers = list(pool.map(send, clients))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert len({answer.headers["Location"] for answer in answers}) == 1
    replays = [answer.headers.get("Idempotent-Replay") for answer in answers]
    assert (replays.count(None), replays.count("true")) == (1, MANY - 1)
    with api.runtime.db.read() as session:
        assert session.scalar(select(func.count()).select_from(Request)) == 1
        received = select(func.count()).where(AuditEvent.type == "REQUEST_RECEIVED")
        assert session.scalar(received) == 1
