"""When something behind the API is not as it should be: a sentence, the right status, and nothing changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from effaced.app import create_app
from effaced.core.servers import Valkey

Api = Any


def test_a_read_only_database_takes_nothing_in_and_says_when_to_come_back(api: Api) -> None:
    before = api.rows()
    api.make_read_only()
    answer = api.post(api.erasure())
    assert api.problem(answer)[:2] == (503, "unavailable")
    assert int(answer.headers["Retry-After"]) > 0
    assert api.rows() == before


def test_a_database_that_is_gone_is_503_and_not_ready(
    make_api: Callable[..., Api], migrated_postgres_url: str, make_runtime: Callable[..., Any]
) -> None:
    api = make_api(migrated_postgres_url)
    gone = create_app(make_runtime("postgresql://nobody@127.0.0.1:1/nothing"))
    answer = gone.test_client().post("/api/v1/requests", json=api.erasure(), headers=api.headers())
    assert api.problem(answer)[:2] == (503, "unavailable")
    answer = gone.test_client().get("/readyz")
    assert api.problem(answer)[:2] == (503, "unavailable")
    assert answer.get_json()["errors"][0] == {
        "field": "database",
        "code": "not_ready",
        "message": "does not answer",
    }
    assert gone.test_client().get("/healthz").status_code == 200


def test_an_execution_that_fails_does_not_take_the_request_back(trusted_api: Api) -> None:
    _ = trusted_api.runtime.executor
    with trusted_api.runtime.db.begin() as session:
        if session.get_bind().dialect.name == "postgresql":
            session.execute(
                text(
                    "CREATE FUNCTION refuse() RETURNS trigger AS $$ BEGIN RAISE 'no'; END $$ LANGUAGE plpgsql"
                )
            )
            session.execute(
                text("CREATE TRIGGER t BEFORE DELETE ON customers FOR EACH ROW EXECUTE FUNCTION refuse()")
            )
        else:
            session.execute(
                text("CREATE TRIGGER t BEFORE DELETE ON customers BEGIN SELECT RAISE(ABORT, 'no'); END")
            )
    answer = trusted_api.post(trusted_api.erasure())
    assert answer.status_code == 201
    shown = trusted_api.whole(answer.headers["Location"])
    assert [each["type"] for each in shown["events"]][:2] == ["REQUEST_RECEIVED", "LOCAL_EXECUTION_FAILED"]
    assert trusted_api.rows()["customers"] == 6


def test_a_broken_data_map_is_503_and_its_details_stay_inside(
    make_api: Callable[..., Api], migrated_sqlite_url: str, tmp_path: Path
) -> None:
    api = make_api(migrated_sqlite_url)
    before = api.rows()
    (tmp_path / "datamap.yaml").write_text("version: 1\nsubject: {table: secret_table, key: id}\n")
    for answer in (api.post(api.erasure()), api.get("/readyz")):
        assert api.problem(answer)[:2] == (503, "unavailable")
        assert "secret_table" not in answer.text
    assert api.rows() == before


# --- /healthz, /readyz ---


def test_a_whole_effaced_is_ready_even_without_redis(api: Api) -> None:
    answer = api.app.test_client().get("/readyz")
    body = answer.get_json()
    assert (answer.status_code, body["status"]) == (200, "ready")
    assert {name for name, said in body["checks"].items() if said == "ok"} == {
        "database",
        "data_map",
        "resolvers",
    }
    assert body["checks"]["redis"].startswith("not configured")


def test_a_silent_redis_is_told_of_and_does_not_matter(
    make_api: Callable[..., Api], migrated_sqlite_url: str, own_valkey: Valkey
) -> None:
    client = make_api(migrated_sqlite_url, redis_url=own_valkey.url).app.test_client()
    assert client.get("/readyz").get_json()["checks"]["redis"] == "ok"
    own_valkey.stop()
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert answer.get_json()["checks"]["redis"].startswith("does not answer")


def test_a_database_without_effaced_s_tables_is_not_ready(
    make_runtime: Callable[..., Any], database_url: str
) -> None:
    client = create_app(make_runtime(database_url)).test_client()
    answer = client.get("/readyz")
    assert answer.status_code == 503
    said = {each["field"]: each["message"] for each in answer.get_json()["errors"]}
    assert "effaced migrate" in said["database"]


def test_readiness_names_everything_that_is_missing(
    make_api: Callable[..., Api], migrated_sqlite_url: str, tmp_path: Path
) -> None:
    api = make_api(migrated_sqlite_url)
    (tmp_path / "datamap.yaml").unlink()
    (tmp_path / "resolvers.yaml").write_text("version: 1\nresolvers: {crm: {kind: nonsense}}")
    answer = api.app.test_client().get("/readyz")
    assert [each["field"] for each in answer.get_json()["errors"]] == ["data_map", "resolvers"]


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_needs_no_key_and_is_not_kept(
    make_api: Callable[..., Api], migrated_sqlite_url: str, path: str
) -> None:
    answer = make_api(migrated_sqlite_url).app.test_client().get(path)
    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-store")
