"""E-mail: plain text over SMTP."""

from __future__ import annotations

import asyncio
import re
import smtplib
import socket
import ssl
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from functools import partial
from threading import Thread
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, model_validator

from effaced.core import clock
from effaced.core.strict import Strict
from effaced.model import USUAL_NOTICES, NoticeType
from effaced.notify import words
from effaced.notify.target import Common, NotDelivered, Outgoing, Sent

# One plain address: no name beside it, no list, nothing that could end a header line.
_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")
_HOST = re.compile(r"[A-Za-z0-9.:_-]+")
_PORTS = {"none": 25, "starttls": 587, "tls": 465}
# A completed request needs nobody's attention; who wants a mail for each says so.
_USUAL = USUAL_NOTICES - {NoticeType.REQUEST_COMPLETED}


def _address(value: str) -> str:
    if len(value) > 254 or not _ADDRESS.fullmatch(value):
        raise ValueError("expected one plain address such as privacy@company.example")
    return value


def _host(value: str) -> str:
    if not _HOST.fullmatch(value):
        raise ValueError("expected a host's name or address")
    return value


Address = Annotated[str, AfterValidator(_address)]


class SmtpConfig(Strict):
    """The mail server. Credentials are never sent in the clear."""

    host: Annotated[str, AfterValidator(_host)]
    port: int | None = Field(default=None, ge=1, le=65_535)
    security: Literal["none", "starttls", "tls"] = "starttls"
    user: str | None = Field(default=None, min_length=1)
    password: SecretStr | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _login_fits(self) -> SmtpConfig:
        if (self.user is None) != (self.password is None):
            raise ValueError("user and password are given together or not at all")
        if self.user is not None and self.security == "none":
            raise ValueError("a password needs security: starttls or tls")
        return self


class EmailConfig(Common):
    smtp: SmtpConfig
    sender: Address = Field(alias="from")
    to: list[Address] = Field(min_length=1, max_length=50)


@dataclass(frozen=True, slots=True)
class EmailTarget:
    """Notifies people by e-mail, with one message to all recipients. `public_url` is where the console is."""

    name: str
    config: EmailConfig = field(repr=False)
    public_url: str | None = None
    kind = "email"

    @property
    def events(self) -> frozenset[NoticeType]:
        return self.config.events or _USUAL

    @property
    def timeout(self) -> timedelta:
        return timedelta(seconds=self.config.timeout)

    @property
    def where(self) -> str:
        number = len(self.config.to)
        return f"{number} {'person' if number == 1 else 'people'} by way of {self.config.smtp.host}"

    async def send(self, message: Outgoing) -> Sent:
        """Hand the mail to the server.

        It counts as delivered once the server accepts it for at least one recipient.
        """
        mail = self.compose(message)
        trouble: NotDelivered
        try:
            async with asyncio.timeout(self.config.timeout):
                refused = await _in_own_thread(partial(self._hand_over, mail))
            return Sent(250, "some_refused" if refused else None)
        except TimeoutError:
            trouble = NotDelivered("timeout")
        except (smtplib.SMTPException, OSError) as error:
            trouble = NotDelivered(type(error).__name__, status_code=_reply_code(error))
        # Raised out here: smtplib's exceptions quote the server and the recipients.
        raise trouble

    def compose(self, message: Outgoing) -> EmailMessage:
        mail = EmailMessage(policy=SMTP)
        mail["From"] = self.config.sender
        mail["To"] = ", ".join(self.config.to)
        mail["Subject"] = words.subject(message)
        mail["Date"] = format_datetime(clock.now())
        # The same at every attempt, so that a mailbox can tell a repetition.
        mail["Message-ID"] = f"<{message.id}.{self.name}@{self.config.sender.partition('@')[2]}>"
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(words.text(message, self.public_url))
        return mail

    def _hand_over(self, mail: EmailMessage) -> int:
        """Give the mail to the SMTP server; returns how many recipients it refused."""
        smtp = self.config.smtp
        server = self._connect()
        try:
            if smtp.security == "starttls":
                server.starttls(context=ssl.create_default_context())
            if smtp.user is not None and smtp.password is not None:
                server.login(smtp.user, smtp.password.get_secret_value())
            return len(server.send_message(mail, self.config.sender, self.config.to))
        finally:
            with suppress(smtplib.SMTPException, OSError):
                server.quit()  # what it has taken stays taken, however it says goodbye
            server.close()

    def _connect(self) -> smtplib.SMTP:
        smtp = self.config.smtp
        port, timeout, me = smtp.port or _PORTS[smtp.security], self.config.timeout, socket.gethostname()
        if smtp.security == "tls":
            context = ssl.create_default_context()
            return smtplib.SMTP_SSL(smtp.host, port, local_hostname=me, timeout=timeout, context=context)
        return smtplib.SMTP(smtp.host, port, local_hostname=me, timeout=timeout)


async def _in_own_thread(act: Callable[[], int]) -> int:
    """Run this in a thread that nothing waits for at the end: the server may keep it for ever."""
    future: Future[int] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(act())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, name="effaced-smtp", daemon=True).start()
    return await asyncio.wrap_future(future)


def _reply_code(error: Exception) -> int | None:
    if isinstance(error, smtplib.SMTPResponseException):
        return error.smtp_code
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return next((code for code, _said in error.recipients.values()), None)
    return None
