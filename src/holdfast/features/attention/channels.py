"""Sends one notification over one channel. An error is raised, and the job tries again later."""

import hmac
import os
import shutil
import smtplib
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from hashlib import sha256
from typing import Any

import msgspec

from holdfast.core.attention import KINDS, Need
from holdfast.core.errors import HoldfastError
from holdfast.core.job import Run
from holdfast.core.network import is_loopback
from holdfast.core.text import strip_controls
from holdfast.features.attention.looking import terminal_of, tmux, tmux_around
from holdfast.features.attention.rules import MOST_AT_ONCE
from holdfast.features.attention.settings import AttentionSettings

HTTP_S = 10.0
LONGEST_LINE = 300
DEEPEST_TMUX = 3
DESKTOP = ("org.freedesktop.Notifications", "/org/freedesktop/Notifications")


class NotSent(HoldfastError):
    """The notification was not sent"""


@dataclass(frozen=True)
class Message:
    """`links`: the address with which each question can be answered, by the id of its need."""

    needs: Sequence[Need]
    links: Mapping[str, str]
    at: int
    id: str
    """The same in every attempt, so that a receiver can leave out repetitions."""

    @property
    def title(self) -> str:
        if not self.needs:
            return "Holdfast: a test"
        first = self.needs[0]
        if len(self.needs) > 1:
            return f"{len(self.needs)} sessions need you"
        return f"{folder(first)}: {first.agent or 'an agent'} {KINDS[first.kind]}"

    @property
    def body(self) -> str:
        if not self.needs:
            return "If you can read this, notifications arrive."
        lines = [self._line(need) for need in self.needs[:MOST_AT_ONCE]]
        more = len(self.needs) - len(lines)
        return "\n".join([*lines, *([f"and {more} more: holdfast who"] if more else [])])

    def _line(self, need: Need) -> str:
        head = "" if len(self.needs) == 1 else f"{folder(need)}: {KINDS[need.kind]}: "
        task = f" ({_cut(need.task, 80)})" if need.task else ""
        link = f"\n{self.links[need.id]}" if need.id in self.links else ""
        return f"{head}{_cut(need.text, LONGEST_LINE)}{task}{link}"

    def as_dict(self) -> dict[str, Any]:
        names = "id kind text since agent tool session project task".split()
        needs = [
            {**{name: getattr(one, name) for name in names}, "link": self.links.get(one.id, "")} for one in self.needs
        ]
        return {"id": self.id, "at": self.at, "title": self.title, "text": self.body, "needs": needs}


def folder(need: Need) -> str:
    return _cut(need.project.rstrip("/").rpartition("/")[2], 60) or "holdfast"


def _cut(text: str, limit: int) -> str:
    line = " ".join(strip_controls(text).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def send(channel: str, message: Message, settings: AttentionSettings, pids: Sequence[int], run: Run) -> None:
    """`pids`: the agents' processes, whose terminals are notified."""
    if channel == "desktop":
        _send_to_desktop(message, run)
    elif channel == "terminal":
        _send_to_terminals(message, pids)
    elif channel == "page":
        pass  # Open pages see its event.
    elif channel == "email":
        _send_mail(message, settings)
    else:
        _post(*_request(channel, message, settings))


# ── this machine ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _send_to_desktop(message: Message, run: Run) -> None:
    """Over the session bus, by whichever program is there. Text that people and agents wrote is never markup."""
    title, body = message.title, _escaped(message.body)
    if sys.platform == "darwin":
        script = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run"
        _run_notifier(run, ["osascript", "-e", script, title, message.body])
    elif shutil.which("notify-send"):
        _run_notifier(run, ["notify-send", "-a", "Holdfast", "--", title, body])
    elif shutil.which("gdbus"):
        service, path = DESKTOP
        values = [
            _variant("Holdfast"),
            "@u 0",
            _variant(""),
            _variant(title),
            _variant(body),
            "@as []",
            "@a{sv} {}",
            "@i -1",
        ]
        words = ["gdbus", "call", "--session", "--timeout", "5", "-d", service, "-o", path, "-m", f"{service}.Notify"]
        _run_notifier(run, [*words, *values])
    else:
        raise NotSent("neither notify-send nor gdbus is installed")


def _variant(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _run_notifier(run: Run, words: list[str]) -> None:
    environment = {**os.environ}
    bus = f"/run/user/{os.geteuid()}/bus"
    if "DBUS_SESSION_BUS_ADDRESS" not in environment and os.path.exists(bus):  # noqa: PTH110 - a socket
        environment["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={bus}"
    if sys.platform != "darwin" and "DBUS_SESSION_BUS_ADDRESS" not in environment:
        raise NotSent("there is no D-Bus session")
    done = run(words, env=environment, timeout=10.0, nice=0)
    if done.code:
        raise NotSent(done.err.decode("utf-8", "replace").strip()[:200] or f"{words[0]} ended with {done.code}")


def _send_to_terminals(message: Message, pids: Sequence[int]) -> None:
    reached = [pid for pid in pids if _send_to_terminal(pid, message)]
    if not reached:
        raise NotSent("the session has no terminal")


def _send_to_terminal(pid: int, message: Message, depth: int = DEEPEST_TMUX) -> bool:
    """A bell, and the notification of terminals that show one. Through tmux, also within tmux, to the terminal outside."""
    terminal, server = terminal_of(pid), tmux_around(pid)
    if not server:
        return bool(terminal) and write_terminal(terminal, notice_codes(message))
    clients = tmux(server, "list-clients", "-F", "#{client_pid}").split() if depth else []
    outside = [_send_to_terminal(int(one), message, depth - 1) for one in clients if one.isdecimal()]
    return any([*outside, bool(terminal) and write_terminal(terminal, b"\a")])


def notice_codes(message: Message) -> bytes:
    """OSC 9 (iTerm2, Windows Terminal, Ghostty), OSC 777 (urxvt, foot), OSC 99 (kitty), then the bell."""
    title, body = (_cut(text, 200).replace(";", ",") for text in (message.title, message.body))
    kitty = f"\x1b]99;i=holdfast:d=0;{title}\x1b\\\x1b]99;i=holdfast:p=body;{body}\x1b\\"
    return f"\x1b]9;{title}: {body}\x1b\\\x1b]777;notify;{title};{body}\x1b\\{kitty}\a".encode()


def write_terminal(path: str, codes: bytes) -> bool:
    """Never waits: a terminal that is stopped takes nothing."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.isatty(descriptor) and os.write(descriptor, codes) == len(codes)
    except OSError:
        return False
    finally:
        os.close(descriptor)


# ── over the network ──────────────────────────────────────────────────────────────────────────────────────────────────


def _request(channel: str, message: Message, settings: AttentionSettings) -> tuple[str, bytes, dict[str, str]]:
    if channel == "ntfy":
        headers = {
            "Title": _header(message.title),
            "Tags": "hourglass",
            "Priority": "high" if message.needs else "default",
        }
        if settings.ntfy_token:
            headers["Authorization"] = f"Bearer {settings.ntfy_token}"
        if len(message.links) == 1:
            headers["Click"] = next(iter(message.links.values()))
        return settings.ntfy, message.body.encode(), headers
    if channel == "chat":
        # `text` is what Slack, Teams and Mattermost read, `content` what Discord reads.
        text = f"{message.title}\n{message.body}"
        return settings.chat, msgspec.json.encode({"text": text, "content": text[:1900]}), JSON
    body = msgspec.json.encode(message.as_dict())
    return (
        settings.webhook,
        body,
        {**JSON, **signature(settings.webhook_secret, message.at, body), "X-Holdfast-Id": message.id},
    )


JSON = {"Content-Type": "application/json"}


def signature(secret: str, at: int, body: bytes) -> dict[str, str]:
    """Over the time and the body, so that an old one cannot be sent again."""
    if not secret:
        return {}
    signed = hmac.new(secret.encode(), f"{at}.".encode() + body, sha256).hexdigest()
    return {"X-Holdfast-Timestamp": str(at), "X-Holdfast-Signature": f"sha256={signed}"}


def _header(text: str) -> str:
    """Headers are ASCII; ntfy reads the encoded form."""
    from email.header import Header

    return text if text.isascii() else Header(text, "utf-8", maxlinelen=10_000).encode()


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect could lead to an address inside of the network, with what is private in the body."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _post(address: str, body: bytes, headers: Mapping[str, str]) -> None:
    opener = urllib.request.build_opener(_NoRedirects)
    request = urllib.request.Request(address, body, {"User-Agent": "holdfast", **headers}, method="POST")  # noqa: S310
    try:
        with opener.open(request, timeout=HTTP_S) as answer:
            answer.read(1024)
    except urllib.error.HTTPError as error:
        where = "a redirect, which is not followed" if 300 <= error.code < 400 else f"status {error.code}"
        raise NotSent(f"the receiver answered with {where}") from None
    except (OSError, ValueError) as error:
        raise NotSent(f"{type(error).__name__}: {str(error)[:200]}") from None


def _send_mail(message: Message, settings: AttentionSettings) -> None:
    mail = settings.mail
    if mail.encryption == "none" and not is_loopback(mail.server):
        raise NotSent("unencrypted mail goes to this machine only", fix="Set attention.mail.encryption.")
    letter = EmailMessage()
    letter["Subject"], letter["From"], letter["To"] = message.title, mail.sender or mail.to, mail.to
    letter["Message-ID"] = f"<{message.id}@holdfast>"
    letter.set_content(message.body)
    context = ssl.create_default_context()
    try:
        opened = (
            smtplib.SMTP_SSL(mail.server, mail.port, timeout=HTTP_S, context=context)
            if mail.encryption == "tls"
            else smtplib.SMTP(mail.server, mail.port, timeout=HTTP_S)
        )
        with opened as server:
            if mail.encryption == "starttls":
                server.starttls(context=context)
            if mail.user:
                server.login(mail.user, mail.password)
            server.send_message(letter)
    except (OSError, smtplib.SMTPException) as error:
        raise NotSent(f"{type(error).__name__}: {str(error)[:200]}") from None
