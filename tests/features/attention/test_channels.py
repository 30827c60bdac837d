"""Each channel, with real receivers on loopback and a real terminal."""

import hmac
import json
import os
import pty
import shutil
import subprocess
from email import message_from_bytes
from email.policy import default
from hashlib import sha256
from pathlib import Path

import pytest

from holdfast.core.attention import Need
from holdfast.core.job import run_briefly
from holdfast.features.attention import channels
from holdfast.features.attention.channels import Message, NotSent, notice_codes, send, write_terminal
from holdfast.features.attention.settings import AttentionSettings, Mail
from tests.factories import NOON
from tests.features.attention.screens import send_to_desktop, session_bus
from tests.features.attention.servers import http_receiver, smtp_receiver
from tests.kit import wait_until

NEED = Need(
    id="s#2", kind="permission", text="rm -rf 'bü<b>ild' && $(x)\x1b]0;evil\x07", since=NOON, agent="claude-code",
    session="s", project="/p/shop", task="clean up",
)  # fmt: skip
MESSAGE = Message([NEED], {}, NOON, "7-webhook")


def test_a_webhook_is_signed_over_its_time_and_body():
    with http_receiver() as got:
        settings = AttentionSettings(webhook=got.address("/hook"), webhook_secret="a-secret-of-mine")
        send("webhook", MESSAGE, settings, [], run_briefly)
        ((path, headers, body),) = got.requests
    expected = hmac.new(b"a-secret-of-mine", f"{NOON}.".encode() + body, sha256).hexdigest()
    assert (path, headers["X-Holdfast-Signature"], headers["X-Holdfast-Id"]) == (
        "/hook",
        f"sha256={expected}",
        "7-webhook",
    )
    (need,) = json.loads(body)["needs"]
    assert (need["task"], need["project"], need["kind"]) == ("clean up", "/p/shop", "permission")


@pytest.mark.parametrize("status", [302, 404, 500])
def test_a_refusal_or_a_redirect_is_not_sent_and_leads_nowhere(status: int):
    with http_receiver() as got:
        got.status["/hook"] = status
        with pytest.raises(NotSent):
            send("webhook", MESSAGE, AttentionSettings(webhook=got.address("/hook")), [], run_briefly)
        assert [path for path, _, _ in got.requests] == ["/hook"]


def test_a_receiver_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(channels, "HTTP_S", 0.2)
    with http_receiver() as got:
        got.hangs.clear()
        with pytest.raises(NotSent, match="timed out"):
            send("webhook", MESSAGE, AttentionSettings(webhook=got.address("/hook")), [], run_briefly)


def test_a_redirect_to_a_private_address_is_never_followed():
    with http_receiver() as inside, http_receiver() as got:
        got.status["/hook"], got.location = 302, inside.address("/latest/meta-data")
        with pytest.raises(NotSent, match="redirect"):
            send("webhook", MESSAGE, AttentionSettings(webhook=got.address("/hook")), [], run_briefly)
        assert (len(got.requests), inside.requests) == (1, [])


def test_ntfy_and_chat_get_what_they_read():
    with http_receiver() as got:
        settings = AttentionSettings(ntfy=got.address("/topic"), ntfy_token="t0", chat=got.address("/chat"))
        send("ntfy", Message([NEED], {"s#2": "https://x/a/1"}, NOON, "1"), settings, [], run_briefly)
        send("chat", MESSAGE, settings, [], run_briefly)
        (_, ntfy, text), (_, _, chat) = got.requests
    assert (ntfy["Title"], ntfy["Authorization"], ntfy["Click"]) == (
        "shop: claude-code asks for permission", "Bearer t0", "https://x/a/1",
    )  # fmt: skip
    assert "clean up" in text.decode()
    assert json.loads(chat)["text"] == json.loads(chat)["content"]


def test_a_mail_arrives_and_unencrypted_mail_stays_on_this_machine():
    with smtp_receiver() as got:
        mail = Mail(server="127.0.0.1", port=got.port, encryption="none", to="ada@example.com")
        send("email", MESSAGE, AttentionSettings(mail=mail), [], run_briefly)
        ((_, _, body),) = got.requests
    letter = message_from_bytes(body, policy=default)
    assert letter["Subject"] == "shop: claude-code asks for permission"
    assert "bü<b>ild" in letter.get_content()
    with pytest.raises(NotSent, match="this machine only"):
        send(
            "email",
            MESSAGE,
            AttentionSettings(mail=Mail(server="mail.example.com", encryption="none", to="a@b.c")),
            [],
            run_briefly,
        )


def test_nothing_of_an_agent_reaches_a_terminal_as_a_code():
    codes = notice_codes(MESSAGE).decode()
    assert "\x1b]0;" not in codes
    assert codes.count("\x1b]9;") == codes.count("\x1b]777;") == 1
    assert codes.endswith("\a")


def test_a_terminal_gets_it_and_a_file_does_not(tmp_path: Path):
    main, other = pty.openpty()
    try:
        assert write_terminal(os.ttyname(other), notice_codes(MESSAGE))
        assert b"]777;notify;shop" in os.read(main, 4096)
    finally:
        os.close(main)
        os.close(other)
    file = tmp_path / "file"
    file.write_bytes(b"")
    assert not write_terminal(str(file), b"x")
    assert file.read_bytes() == b""


@pytest.mark.skipif(not all(map(shutil.which, ("dbus-daemon", "dbus-monitor", "gdbus"))), reason="no D-Bus here")
def test_a_desktop_without_a_notification_service_says_so_and_text_is_only_text(tmp_path: Path, monkeypatch):
    with session_bus(tmp_path, monkeypatch), (tmp_path / "seen").open("wb") as seen:
        monitor = subprocess.Popen(["dbus-monitor", "--session"], stdout=seen)
        wait_until(lambda: (tmp_path / "seen").stat().st_size > 0, "it is watched")
        with pytest.raises(NotSent, match=r"org\.freedesktop\.Notifications"):
            send_to_desktop(MESSAGE, "gdbus", tmp_path, monkeypatch)
        wait_until(lambda: b"clean up" in (tmp_path / "seen").read_bytes(), "the call was made")
        monitor.terminate()
        monitor.wait()
    assert "bü&lt;b&gt;ild" in (tmp_path / "seen").read_text()


def test_without_a_session_bus_it_says_so(monkeypatch):
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    with pytest.raises(NotSent):
        send("desktop", MESSAGE, AttentionSettings(), [], run_briefly)


def test_many_needs_are_one_short_message():
    message = Message([NEED] * 1000, {}, NOON, "1")
    assert message.title == "1000 sessions need you"
    assert "and 980 more" in message.body
