"""Message targets over HTTP: registered, changed, rotated, tested, replayed; and who gets what."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from integrators import MESSAGES, STAGES, Integrator, Join, deliver, drain
from receivers import Receiver
from sqlalchemy import select
from standardwebhooks import Webhook, WebhookVerificationError
from waiting import eventually

from effaced.accounts.api_keys import create_api_key, find_api_key, revoke_api_key
from effaced.accounts.key_rules import NewApiKey
from effaced.accounts.scopes import Scope
from effaced.audit.tables import AuditEvent
from effaced.core import clock
from effaced.core.clock import ManualClock
from effaced.deadletters.tables import DeadLetter
from effaced.model import DeadLetterStatus
from effaced.notify.notices import BreakerClosed
from effaced.notify.tables import Delivery, Message
from effaced.notify.write import announce
from effaced.requests.tables import Request

from .conftest import Api


@pytest.fixture
def shop(join: Join) -> Integrator:
    return join("webshop")


class TestRegistering:
    def test_shows_the_secret_once_and_the_address_never(self, shop: Integrator) -> None:
        made = shop.register(url=f"{shop.receiver.url}/token")
        shown = shop.get(f"/{made['id']}")
        assert made["secret"].startswith("whsec_")
        assert {**shown, "secret": made["secret"]} == made
        assert shown["origin"] == shop.receiver.url.removesuffix("/hooks/effaced")
        assert shop.get() == {"data": [shown]}
        everything = shop.api.everything()
        assert made["secret"] not in everything
        assert "/token" not in everything

    def test_the_same_call_again_makes_no_second_one_and_shows_no_secret(self, shop: Integrator) -> None:
        asked = {"name": "shop", "url": shop.receiver.url, "events": ["request.completed"]}
        first, second = (shop.post(body=asked, **{"Idempotency-Key": "a"}) for _ in range(2))
        assert second.get_json() == {**first.get_json(), "secret": None}
        assert second.headers["Idempotent-Replay"] == "true"
        assert len(shop.get()["data"]) == 1

    @pytest.mark.parametrize(
        "url",
        [
            "http://hooks.example/x",
            "https://127.0.0.2/x",
            "https://localhost.localdomain:8443/x",
            "https://[::1]/x",
            "https://169.254.169.254/latest/meta-data/",
            "https://[::ffff:10.0.0.1]/",
            "https://2130706434/",
            "https://user:password@hooks.example/",
            "https://hooks.example:22/",
            "https://nobody.invalid/",
            "ftp://hooks.example/",
            "nonsense",
        ],
    )
    def test_an_address_that_is_not_allowed_is_refused_by_name(self, shop: Integrator, url: str) -> None:
        asked = {"name": "shop", "url": url, "events": ["request.completed"]}
        answer = shop.post(body=asked)
        status, slug, fields = Api.problem(answer)
        assert (status, slug, list(fields)) == (422, "refused", ["url"])
        assert answer.get_json()["errors"][0]["code"] == "address_not_allowed"
        assert url not in answer.text
        assert shop.get() == {"data": []}

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("name", ""), ("name", "Shop"), ("name", "api:1"), ("name", "a" * 64), ("name", "a\n"),
            ("name", "\x00"), ("name", 7), ("url", 7), ("url", ""), ("url", "https://a.example/\x00"),
            ("events", []), ("events", ["nonsense"]), ("events", ["notify.test"]), ("events", "step.failed"),
            ("events", ["step.failed", "step.failed"]), ("events", [7]), ("all_requests", "yes"),
            ("more", 1),
        ],
    )  # fmt: skip
    def test_wrong_fields_are_named(self, shop: Integrator, field: str, value: object) -> None:
        asked = {"name": "shop", "url": shop.receiver.url, "events": ["request.completed"], field: value}
        status, _, fields = Api.problem(shop.post(body=asked))
        assert status == 422
        assert [each.partition(".")[0] for each in fields] == [field]
        assert shop.get() == {"data": []}

    def test_a_name_is_taken_once_per_key_and_not_by_other_keys(self, shop: Integrator, join: Join) -> None:
        shop.register()
        again = shop.post(body={"name": "shop", "url": shop.receiver.url, "events": ["step.failed"]})
        assert Api.problem(again)[0] == 409
        join("crm").register()

    def test_a_name_of_notify_yaml_is_refused(
        self, make_api: Callable[..., Api], migrated_url: str, tmp_path: Path, oncall: Receiver
    ) -> None:
        block = f"{{kind: webhook, url: '{oncall.url}', secret: 'whsec_{'A' * 44}'}}"
        (tmp_path / "notify.yaml").write_text(f"version: 1\ntargets: {{shop: {block}}}\n")
        api = make_api(migrated_url, notify=tmp_path / "notify.yaml", allow_private_targets="127.0.0.1/32")
        with api.runtime.db.begin() as session:
            made = create_api_key(
                session, NewApiKey(name="x", approvals_needed=0, scopes=MESSAGES), actor="cli"
            )
        shop = Integrator(api, made[1], oncall)
        answer = shop.post(body={"name": "shop", "url": oncall.url, "events": ["step.failed"]})
        assert Api.problem(answer)[::2] == (422, {"name": "is the name of a target in notify.yaml"})

    def test_a_key_has_at_most_ten_even_if_it_asks_for_more_at_once(self, shop: Integrator) -> None:
        def register(number: int) -> int:
            asked = {"name": f"t{number}", "url": shop.receiver.url, "events": ["step.failed"]}
            return shop.post(body=asked).status_code

        with ThreadPoolExecutor(4) as pool:
            statuses = list(pool.map(register, range(14)))
        assert sorted(statuses) == [201] * 10 + [409] * 4
        assert len(shop.get()["data"]) == 10

    def test_everybody_s_requests_need_a_key_that_reads_them(self, shop: Integrator) -> None:
        asked = {"name": "all", "url": shop.receiver.url, "events": ["step.failed"], "all_requests": True}
        assert Api.problem(shop.post(body=asked))[:2] == (403, "forbidden")

    def test_is_in_the_trail_without_the_address(self, shop: Integrator) -> None:
        made = shop.register()
        shop.post(f"/{made['id']}", {"enabled": False})
        shop.post(f"/{made['id']}/rotate-secret")
        shop.call("DELETE", f"/{made['id']}")
        with shop.api.runtime.db.read() as session:
            found = session.scalars(
                select(AuditEvent.payload)
                .where(AuditEvent.type == "MESSAGE_TARGET_CHANGED")
                .order_by(AuditEvent.id)
            ).all()
        assert [each["change"] for each in found] == ["registered", "changed", "secret_rotated", "deleted"]
        assert {each["target_id"] for each in found} == {made["id"]}

    def test_other_keys_find_nothing_of_it(self, shop: Integrator, join: Join) -> None:
        made = shop.register(STAGES)
        shop.ask()
        deliver(shop.api)
        delivery = shop.get(f"/{made['id']}/deliveries")["data"][0]["id"]
        other = join("crm")
        for method, path, body in (
            ("GET", "", None),
            ("POST", "", {"enabled": False}),
            ("DELETE", "", None),
            ("POST", "/rotate-secret", None),
            ("POST", "/test", None),
            ("GET", "/deliveries", None),
            ("GET", f"/deliveries/{delivery}", None),
            ("POST", f"/deliveries/{delivery}/replay", None),
        ):
            assert other.call(method, f"/{made['id']}{path}", body).status_code == 404
        assert other.get() == {"data": []}
        own = other.register()
        assert other.call("GET", f"/{own['id']}/deliveries/{delivery}").status_code == 404
        assert other.call("POST", f"/{own['id']}/deliveries/{delivery}/replay").status_code == 404

    @pytest.mark.parametrize("name", ["nonsense", "%00", "263a11b6-587f-4a68-ae26-4862c1d00a28", "1" * 40])
    def test_what_is_not_there_is_not_found(self, shop: Integrator, name: str) -> None:
        assert shop.call("GET", f"/{name}").status_code == 404
        assert shop.post(f"/{name}/test").status_code == 404


class TestDelivery:
    def test_a_request_s_stages_arrive_in_their_order_signed(self, shop: Integrator) -> None:
        made = shop.register(STAGES)
        request = shop.ask()
        drain(shop.api)
        deliver(shop.api)
        bodies = [post.verified(made["secret"]) for post in shop.receiver.posts]
        assert [each["type"] for each in bodies] == STAGES
        assert {each["data"]["request_id"] for each in bodies} == {request["id"]}
        assert {each["data"]["ref"] for each in bodies} == {request["ref"]}
        assert bodies[0]["data"]["due_at"] == request["due_at"]
        assert all(each["timestamp"].endswith("Z") and len(each["timestamp"]) == 24 for each in bodies)

    def test_steps_arrive_only_if_they_are_named(self, shop: Integrator, join: Join) -> None:
        shop.register(["request.completed"])
        shop.ask()
        drain(shop.api)
        assert _types(shop.api) == ["request.completed"], "nobody wants the others, so they are not written"
        crm = join("crm")
        crm.register(["step.succeeded"])
        request = crm.ask("2")
        drain(shop.api)
        deliver(shop.api)
        (post,) = crm.receiver.posts
        data = post.json()["data"]
        assert (data["resolver"], data["operation"], data["attempts"]) == ("crm", "erase", 1)
        entries = shop.api.get(f"{request['links']['self']}/entries", token=crm.token).get_json()["data"]
        assert [data["entry_id"]] == [each["id"] for each in entries]

    def test_a_key_hears_of_its_own_requests_only(self, shop: Integrator, join: Join) -> None:
        crm = join("crm")
        shop.register(STAGES)
        crm.register(STAGES)
        asked = shop.ask("1")
        other = crm.ask("2")
        drain(shop.api)
        deliver(shop.api)
        assert (shop.told(), shop.told(asked)) == (STAGES, STAGES)
        assert (crm.told(), crm.told(other)) == (STAGES, STAGES)

    def test_only_operators_hear_of_systems(self, shop: Integrator, join: Join) -> None:
        operator = join("operator", Scope.OPERATE_READ)
        for each in (shop, operator):
            each.register(["breaker.closed", "request.received"])
        with shop.api.runtime.db.begin() as session:
            announce(session, [BreakerClosed(breaker="resolver:crm", reason="trials_succeeded")])
        deliver(shop.api)
        assert (shop.told(), operator.told()) == ([], ["breaker.closed"])

    def test_nothing_from_before_it_was_registered_arrives(self, shop: Integrator, now: ManualClock) -> None:
        shop.ask()
        drain(shop.api)
        now.advance(timedelta(minutes=1))
        shop.register(STAGES)
        deliver(shop.api)
        assert shop.receiver.posts == []

    def test_a_disabled_target_gets_what_was_queued_once_it_is_enabled(self, shop: Integrator) -> None:
        made = shop.register(["request.received"])
        shop.ask("1")
        shop.receiver.statuses = [503, 204]
        deliver(shop.api)
        answer = shop.post(f"/{made['id']}", {"enabled": False})
        assert (answer.get_json()["enabled"], answer.get_json()["disabled_at"]) != (True, None)
        shop.ask("2")
        deliver(shop.api)
        assert len(shop.receiver.posts) == 1
        shop.post(f"/{made['id']}", {"enabled": True})
        (delivery,) = shop.get(f"/{made['id']}/deliveries")["data"]
        assert (delivery["status"], delivery["last_error"]) == ("pending", "http_503")

    def test_a_changed_address_and_other_types_hold_from_then_on(
        self, shop: Integrator, oncall: Receiver
    ) -> None:
        made = shop.register(["request.received"])
        changed = shop.post(f"/{made['id']}", {"url": oncall.url, "events": ["request.executed"]})
        assert changed.get_json()["events"] == ["request.executed"]
        shop.ask()
        deliver(shop.api)
        assert shop.receiver.posts == []
        assert [post.json()["type"] for post in oncall.posts] == ["request.executed"]
        assert Api.problem(shop.post(f"/{made['id']}", {"url": "https://10.0.0.1/"}))[0] == 422

    def test_a_revoked_key_hears_nothing_more(self, shop: Integrator) -> None:
        shop.register(STAGES)
        shop.ask()
        with shop.api.runtime.db.begin() as session:
            key = find_api_key(session, "webshop")
            assert key is not None
            revoke_api_key(session, key, actor="cli")
        deliver(shop.api)
        assert shop.receiver.posts == []

    def test_metadata_is_there_until_the_request_is_closed(self, shop: Integrator) -> None:
        shop.register(["request.received", "request.completed"])
        request = shop.ask()
        with shop.api.runtime.db.begin() as session:
            session.get_one(Request, UUID(request["id"])).metadata_values = {"ticket": "T-1"}
        deliver(shop.api)
        assert shop.receiver.posts[0].json()["data"]["metadata"] == {"ticket": "T-1"}

    def test_a_deleted_target_takes_its_deliveries_along_and_settles_their_dead_letters(
        self, make_api: Callable[..., Api], shop: Integrator
    ) -> None:
        made = shop.register(["request.received"])
        shop.receiver.statuses = [500]
        shop.ask()
        with clock.pretend(datetime.now(UTC)) as now:
            for _ in range(20):
                deliver(shop.api)
                now.advance(timedelta(hours=25))
        letters = _letters(shop.api)
        assert [each.status for each in letters] == [DeadLetterStatus.PENDING]
        assert shop.call("DELETE", f"/{made['id']}").status_code == 204
        (letter,) = _letters(shop.api)
        assert (letter.status, letter.resolution) == (DeadLetterStatus.RESOLVED, "target_removed")
        assert shop.call("GET", f"/{made['id']}").status_code == 404
        with shop.api.runtime.db.read() as session:
            assert session.scalars(select(Delivery)).all() == []
        shop.ask("3")
        assert _types(shop.api).count("request.received") == 1, "nobody wants it any more"


class TestSecrets:
    def test_the_old_one_signs_for_a_day_beside_the_new_one(self, shop: Integrator, now: ManualClock) -> None:
        made = shop.register(["request.received"])
        rotated = shop.post(f"/{made['id']}/rotate-secret").get_json()
        assert rotated["secret"] != made["secret"]
        until = datetime.fromisoformat(rotated["old_secret_signs_until"])
        assert timedelta(hours=23) < until - now() <= timedelta(hours=24)
        shop.ask()
        deliver(shop.api)
        (both,) = shop.receiver.posts
        assert both.verified(made["secret"]) == both.verified(rotated["secret"])

    def test_afterwards_the_old_one_signs_nothing(self, shop: Integrator, now: ManualClock) -> None:
        made = shop.register(["request.received"])
        rotated = shop.post(f"/{made['id']}/rotate-secret").get_json()
        now.advance(timedelta(hours=24, seconds=1))
        assert shop.get(f"/{made['id']}")["old_secret_signs_until"] is None
        shop.ask()
        deliver(shop.api)
        (post,) = shop.receiver.posts
        assert len(post.headers["webhook-signature"].split()) == 1
        with pytest.raises(WebhookVerificationError, match="matching"):
            _verify_at(post, made["secret"], now)
        _verify_at(post, rotated["secret"], now)


class TestLog:
    def test_lists_deliveries_with_filters_and_shows_every_attempt(
        self, shop: Integrator, now: ManualClock
    ) -> None:
        made = shop.register(["request.received", "request.executed"])
        base = f"/{made['id']}/deliveries"
        shop.receiver.statuses = [500, 204]
        first, second = shop.ask("1"), shop.ask("2")
        deliver(shop.api)
        now.advance(timedelta(minutes=1))
        deliver(shop.api)
        everything = shop.get(base)["data"]
        assert len(everything) == 4
        assert {each["status"] for each in everything} == {"delivered"}
        assert len(shop.get(f"{base}?type=request.executed")["data"]) == 2
        assert {each["request_id"] for each in shop.get(f"{base}?request_id={first['id']}")["data"]} == {
            first["id"]
        }
        assert shop.get(f"{base}?status=pending")["data"] == []
        page = shop.get(f"{base}?limit=3")
        rest = shop.get(f"{base}?limit=3&after={page['next']}")
        assert [*page["data"], *rest["data"]] == everything
        assert rest["next"] is None
        (twice,) = [each for each in everything if each["attempts"] == 2]
        log = shop.get(f"{base}/{twice['id']}")["attempt_log"]
        assert [(each["outcome"], each["status_code"], each["error"]) for each in log] == [
            ("failed", 500, "http_500"),
            ("delivered", 204, None),
        ]
        assert second["id"] in {each["request_id"] for each in everything}

    @pytest.mark.parametrize("query", ["status=x", "type=x", "request_id=x", "after=x", "limit=0", "y=1"])
    def test_a_wrong_filter_is_refused(self, shop: Integrator, query: str) -> None:
        made = shop.register()
        answer = shop.call("GET", f"/{made['id']}/deliveries?{query}")
        assert list(Api.problem(answer)[2]) == [query.partition("=")[0]]

    def test_a_replay_sends_the_same_message_under_the_same_id(self, shop: Integrator) -> None:
        made = shop.register(["request.received"])
        shop.ask()
        deliver(shop.api)
        (delivery,) = shop.get(f"/{made['id']}/deliveries")["data"]
        path = f"/{made['id']}/deliveries/{delivery['id']}"
        replayed = shop.post(f"{path}/replay")
        assert (replayed.status_code, replayed.get_json()["status"]) == (202, "pending")
        assert Api.problem(shop.post(f"{path}/replay"))[0] == 409
        deliver(shop.api)
        first, second = shop.receiver.posts
        assert (first.id, first.body) == (second.id, second.body)
        assert second.verified(made["secret"])
        assert len(shop.get(path)["attempt_log"]) == 2

    def test_a_test_message_goes_to_this_target_alone(self, shop: Integrator, join: Join) -> None:
        join("crm").register(["request.received"])
        made = shop.register(["request.received"])
        queued = shop.post(f"/{made['id']}/test")
        assert (queued.status_code, queued.get_json()["type"]) == (202, "notify.test")
        assert deliver(shop.api) == 1
        assert shop.receiver.posts[0].verified(made["secret"])["type"] == "notify.test"
        shown = shop.get(f"/{made['id']}/deliveries/{queued.get_json()['id']}")
        assert (shown["status"], shown["message_id"]) == ("delivered", shop.receiver.posts[0].id)
        shop.post(f"/{made['id']}", {"enabled": False})
        assert Api.problem(shop.post(f"/{made['id']}/test"))[0] == 409

    def test_an_address_that_is_not_allowed_any_more_is_an_error_of_the_attempt(
        self, shop: Integrator, make_runtime: Callable[..., Any], migrated_url: str
    ) -> None:
        made = shop.register(["request.received"])
        shop.ask()
        settings = shop.api.runtime.settings
        closed = make_runtime(migrated_url, keys=settings.keys.get_secret_value())
        assert asyncio.run(closed.deliverer().run()) == 0
        (delivery,) = shop.get(f"/{made['id']}/deliveries")["data"]
        assert (delivery["status"], delivery["last_error"]) == ("pending", "address_not_allowed")
        assert shop.receiver.posts == []


def _verify_at(post: Any, secret: str, now: ManualClock) -> None:
    """The library compares with the machine's time: the signature is checked by itself."""
    hook, moment = Webhook(secret), datetime.fromtimestamp(int(post.headers["webhook-timestamp"]), UTC)
    signed = hook.sign(post.id, moment, post.body.decode())
    if signed not in post.headers["webhook-signature"].split():
        raise WebhookVerificationError("No matching signature found")


def _types(api: Api) -> list[str]:
    with api.runtime.db.read() as session:
        return [each.value for each in session.scalars(select(Message.type).order_by(Message.id))]


def _letters(api: Api) -> Sequence[DeadLetter]:
    with api.runtime.db.read() as session:
        return session.scalars(select(DeadLetter)).all()


class TestAtTheSameTime:
    def test_of_many_replays_at_once_one_is_queued(self, shop: Integrator) -> None:
        made = shop.register(["request.received"])
        shop.ask()
        deliver(shop.api)
        (delivery,) = shop.get(f"/{made['id']}/deliveries")["data"]

        def replay(_: int) -> int:
            return shop.post(f"/{made['id']}/deliveries/{delivery['id']}/replay").status_code

        with ThreadPoolExecutor(4) as pool:
            statuses = list(pool.map(replay, range(8)))
        assert sorted(statuses) == [202] + [409] * 7
        assert deliver(shop.api) == 1

    def test_a_target_that_is_deleted_while_it_is_sent_to_leaves_nothing(self, shop: Integrator) -> None:
        made = shop.register(["request.received"])
        shop.ask()
        shop.receiver.stall = True
        with ThreadPoolExecutor(1) as pool:
            sending = pool.submit(deliver, shop.api)
            eventually(lambda: shop.receiver.posts, "the message is being sent")
            assert shop.call("DELETE", f"/{made['id']}").status_code == 204
            shop.receiver.stopping.set()
            sending.result()
        with shop.api.runtime.db.read() as session:
            assert session.scalars(select(Delivery)).all() == []
        assert _letters(shop.api) == []

    def test_a_change_of_nothing_changes_nothing(self, shop: Integrator) -> None:
        made = shop.register()
        before = shop.api.rows()
        assert shop.post(f"/{made['id']}", {}).status_code == 200
        assert shop.api.rows() == before
