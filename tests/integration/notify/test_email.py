"""What people get by e-mail, from a mail server that really took it."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from time import monotonic

import pytest
from receivers import Mailbox, mailbox, make_certificate
from waiting import PATIENCE

from effaced.model import NoticeType, new_id
from effaced.notify.email import EmailConfig, EmailTarget
from effaced.notify.target import NotDelivered, Outgoing, Sent

FACTS = {"resolver": "crm", "attempts": 8, "error": "Rejected", "code": "http_422"}


def target(
    box: Mailbox, *, to: tuple[str, ...] = ("olga@office.example",), timeout: float = 60, **smtp: object
) -> EmailTarget:
    config = EmailConfig.model_validate(
        {
            "kind": "email",
            "smtp": {"host": "127.0.0.1", "port": box.port, "security": "none"} | smtp,
            "from": "effaced@company.example",
            "to": list(to),
            "timeout": timeout,
        }
    )
    return EmailTarget("officers", config, "https://effaced.company.example")


def message(**facts: object) -> Outgoing:
    type_ = NoticeType.ENTRY_ABANDONED
    return Outgoing(new_id(), type_, datetime(2026, 3, 2, tzinfo=UTC), FACTS | facts, new_id(), "ER-7")


def send(to: EmailTarget, told: Outgoing | None = None) -> Sent:
    return asyncio.run(to.send(told or message()))


def test_a_person_reads_what_has_happened_and_where_to_look(post: Mailbox) -> None:
    send(target(post))
    (mail,) = post.mails
    assert mail["Subject"] == "effaced: the call to crm was given up (ER-7)"
    assert (mail["From"], mail["To"]) == ("effaced@company.example", "olga@office.example")
    text = " ".join(mail.get_content().split())
    assert "The call to crm was given up after 8 tries (Rejected, http_422)." in text
    assert "https://effaced.company.example/console/requests/ER-7" in text


def test_all_recipients_get_one_mail(post: Mailbox) -> None:
    send(target(post, to=("olga@office.example", "otto@office.example")))
    assert post.recipients == [["olga@office.example", "otto@office.example"]]


def test_its_id_is_the_same_at_every_try(post: Mailbox) -> None:
    told = message()
    send(target(post), told)
    send(target(post), told)
    assert len({mail["Message-ID"] for mail in post.mails}) == 1


def test_one_refused_recipient_leaves_the_others_their_mail(post: Mailbox) -> None:
    post.refuse = {"gone@office.example"}
    sent = send(target(post, to=("olga@office.example", "gone@office.example")))
    assert sent == Sent(250, "some_refused")
    assert post.recipients == [["olga@office.example"]]


def test_if_all_are_refused_it_is_no_delivery_and_the_error_names_nobody(post: Mailbox) -> None:
    post.refuse = {"olga@office.example"}
    with pytest.raises(NotDelivered) as caught:
        send(target(post))
    assert (caught.value.code, caught.value.status_code) == ("SMTPRecipientsRefused", 550)
    assert caught.value.__context__ is None, "smtplib's exception quotes the recipients"


def test_a_server_that_is_not_there_is_no_delivery() -> None:
    with mailbox() as box:
        pass
    with pytest.raises(NotDelivered, match="ConnectionRefusedError"):
        send(target(box))


def test_a_server_that_never_comes_to_an_end_is_no_delivery_and_holds_nobody_up() -> None:
    """It goes on with one greeting for ever, so no single read times out."""
    enough = Event()

    def greet_for_ever(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection, suppress(OSError):
            until = monotonic() + PATIENCE
            while not enough.wait(0.05) and monotonic() < until:
                connection.sendall(b"220-one moment\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        talker = Thread(target=greet_for_ever, args=(server,))
        talker.start()
        with pytest.raises(NotDelivered, match="timeout"):
            send(target(Mailbox(port=server.getsockname()[1]), timeout=0.5))
        assert talker.is_alive(), "whoever sends has waited for the server"
        enough.set()
        talker.join()


@pytest.mark.parametrize(
    "name", ["crm\u2028Bcc: eve@evil.example", "crm\x85Bcc: eve@evil.example", "c" * 255]
)
def test_no_name_can_add_a_header(post: Mailbox, name: str) -> None:
    send(target(post), message(resolver=name))
    (mail,) = post.mails
    assert mail["Bcc"] is None
    assert post.recipients == [["olga@office.example"]]
    assert mail["Subject"].startswith("effaced: the call to c")


@pytest.mark.parametrize("security", ["starttls", "tls"])
class TestEncrypted:
    @pytest.fixture
    def certificate(self, tmp_path: Path) -> Path:
        return make_certificate(tmp_path / "server.pem")

    def test_signs_in_over_tls_only(
        self, security: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        with mailbox(security=security, certificate=certificate) as box:
            send(target(box, security=security, user="effaced", password="hunter2"))
        assert (box.logins, box.encrypted) == ([("effaced", "hunter2")], [True])

    def test_an_unknown_certificate_is_refused_before_the_password(
        self, security: str, certificate: Path
    ) -> None:
        refused = pytest.raises(NotDelivered, match="SSLCertVerificationError")
        with mailbox(security=security, certificate=certificate) as box, refused:
            send(target(box, security=security, user="effaced", password="hunter2"))
        assert (box.logins, box.mails) == ([], [])
