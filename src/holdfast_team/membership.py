"""What a machine keeps of its team on disk (`team/` in the state folder), and its connection to the server."""

import contextlib
import hashlib
import http.client
import secrets
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from holdfast.core.errors import CommandRefused, HoldfastError
from holdfast.core.machine import look_up_process, machine_id
from holdfast.core.network import is_loopback
from holdfast.paths import Paths, locked_file, private_folder, write_atomically
from holdfast_team import protocol
from holdfast_team.core import Upstream, rely_on_lease

TIMEOUT_S = 15.0
COPIED, REVOKED = "copied", "revoked"
"""The states of a forwarder that stops until a person joins again: another machine sends as this one; an admin revoked
it."""
T = TypeVar("T")


def steady_ms() -> int:
    """A clock that cannot be set and runs during sleep: a lease expires meanwhile."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) // 1_000_000


class TeamUnreachable(HoldfastError):
    """The team's server does not answer."""


class TeamRefused(CommandRefused):
    """The team's server refused"""

    def __init__(self, status: int, detail: str, fix: str = "") -> None:
        super().__init__(detail, fix=fix)
        self.status = status


class Membership(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The token is in this file, readable by its owner only."""

    url: str
    token: str
    tenant: str
    person: str
    role: protocol.Role
    machine: str
    level: protocol.Level = "facts"
    levels: dict[str, str] = {}
    """Another level, or `none`, by local folder of a project."""
    joined_at: int = 0
    rotated_at: int = 0
    """When the token was last replaced, by the local clock in ms."""
    next_token: str = ""
    """A token that the server was, or may have been, sent. On disk before, because its answer may be lost."""
    certificate: str = ""
    """A file with the server's certificate authority, if it isn't a public one."""

    def level_for(self, folder: str, home: str = "") -> str:
        """`home` is the main checkout of the folder's repository: its choice applies to worktrees."""
        return self.levels.get(folder) or self.levels.get(home) or self.level


class OwnLease(msgspec.Struct, kw_only=True):
    """A lease of this machine, renewed while its owner's process lives. `until` is by `steady_ms`."""

    project: str
    name: str
    session: str
    token: int
    ttl_s: int
    until: int
    pid: int = 0
    start: int = 0


class ForwarderStatus(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The status of forwarding, for people."""

    state: str = ""
    """current, sending, viewing, offline, refused, revoked or copied."""
    error: str = ""
    at: int = 0
    pid: int = 0
    cursor: int = 0
    head: int = 0
    sent: int = 0
    skipped: int = 0
    """Events that the server rejected individually; they are not sent again."""
    not_shared: dict[str, str] = {}
    """Local folders without an identity, with the reason."""


class TeamFiles:
    """The files of `team/`, each written atomically."""

    def __init__(self, paths: Paths) -> None:
        self.folder = paths.state / "team"

    @property
    def sent_file(self) -> Path:
        return self.folder / "sent.jsonl"

    @property
    def index_file(self) -> Path:
        return self.folder / "sent.index"

    @property
    def words_file(self) -> Path:
        return self.folder / "sent-words.jsonl"

    def membership(self) -> Membership | None:
        return self._load("membership.json", Membership)

    def membership_mark(self) -> tuple[int, int]:
        """Changes with every write, to know when to read again."""
        with contextlib.suppress(OSError):
            found = (self.folder / "membership.json").stat()
            return found.st_ino, found.st_mtime_ns
        return 0, 0

    def machine_id(self) -> str:
        """The machine's id, or another one chosen because the state folder was copied."""
        try:
            return (self.folder / "machine-id").read_text("ascii").strip() or machine_id()
        except (OSError, ValueError):
            return machine_id()

    def take_new_id(self) -> None:
        write_atomically(private_folder(self.folder) / "machine-id", secrets.token_hex(16).encode())

    def save_membership(self, value: Membership) -> None:
        self._save("membership.json", value)

    def upstream(self) -> Upstream | None:
        return self._load("upstream.json", Upstream)

    def save_upstream(self, value: Upstream) -> None:
        self._save("upstream.json", value)

    def status(self) -> ForwarderStatus:
        return self._load("status.json", ForwarderStatus) or ForwarderStatus()

    def save_status(self, value: ForwarderStatus) -> None:
        self._save("status.json", value)

    def leases(self) -> list[OwnLease]:
        return self._load("leases.json", list[OwnLease]) or []

    @contextlib.contextmanager
    def changing_leases(self) -> Iterator[list[OwnLease]]:
        with self.locked("leases.lock"):
            leases = self.leases()
            yield leases
            self._save("leases.json", leases)

    @contextlib.contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Commands and the forwarder change a file one at a time."""
        with locked_file(private_folder(self.folder) / name):
            yield

    def remove_all(self) -> None:
        """After leaving. The list of what was sent stays for its person."""
        for name in ("membership.json", "upstream.json", "leases.json", "status.json", "leases-in-force"):
            (self.folder / name).unlink(missing_ok=True)

    def _load(self, name: str, type_: type[T]) -> T | None:
        try:
            return msgspec.json.decode((self.folder / name).read_bytes(), type=type_)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def _save(self, name: str, value: Any) -> None:
        write_atomically(private_folder(self.folder) / name, msgspec.json.encode(value))


def need_membership(paths: Paths) -> Membership:
    membership = TeamFiles(paths).membership()
    if membership is None:
        raise CommandRefused("this machine is in no team", fix="Run: holdfast team join URL --code CODE")
    return membership


def check_url(url: str) -> str:
    """Tokens and events travel encrypted, except on this machine itself."""
    parts = urlsplit(url)
    # A name or password in the address would appear in files and messages.
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
        raise CommandRefused(f"{url[:100]!r} is no address of a server", fix="Use https://HOST.")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise CommandRefused("without TLS everything could be read on the way", fix="Use https://.")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


class TeamConnection:
    """One connection that reconnects by itself. Not for two threads at once."""

    def __init__(self, url: str, token: str = "", certificate: str = "", timeout: float = TIMEOUT_S) -> None:
        self._parts, self._token, self._timeout = urlsplit(url), token, timeout
        self._certificate = certificate
        self._http: http.client.HTTPConnection | None = None

    def request(self, method: str, path: str, type_: type[T], body: Any = None) -> T:
        content = b"" if body is None else msgspec.json.encode(body)
        status, answer = self.send(method, path, content)
        if status >= 400:
            raise _refusal_from_answer(status, answer)
        try:
            return msgspec.json.decode(answer, type=type_)
        except msgspec.DecodeError as error:
            raise TeamUnreachable(
                f"it answered something else ({str(error)[:80]})", fix="Is it a team server?"
            ) from error

    def send(
        self, method: str, path: str, content: bytes, timeout: float = 0.0, meanwhile: Callable[[], object] = bool
    ) -> tuple[int, bytes]:
        """Return (status, answer). A kept connection that the server closed is reopened once.

        `meanwhile` runs while the server works, before its answer is read.
        """
        for attempt in (1, 2):
            # Only a kept connection can have been closed meanwhile: if a fresh one fails, there is no server.
            fresh = self._http is None
            try:
                return self._send(method, path, content, timeout or self._timeout, meanwhile)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                # After a timeout the server may have acted: the request is not repeated here.
                if fresh or attempt == 2 or isinstance(error, TimeoutError):
                    raise TeamUnreachable(f"{self._parts.netloc}: {error or type(error).__name__}") from error
        raise AssertionError

    def _send(
        self, method: str, path: str, content: bytes, timeout: float, meanwhile: Callable[[], object]
    ) -> tuple[int, bytes]:
        if self._http is None:
            self._http = self._open()
        self._http.timeout = timeout
        if self._http.sock:
            self._http.sock.settimeout(timeout)
        headers = {
            "content-type": "application/json",
            "user-agent": "holdfast",
            protocol.VERSION_HEADER: str(protocol.VERSION),
        }
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        self._http.request(method, self._parts.path + path, content or None, headers)
        meanwhile()
        answer = self._http.getresponse()
        return answer.status, answer.read()

    def _open(self) -> http.client.HTTPConnection:
        host = self._parts.hostname or ""
        if self._parts.scheme == "http":
            return http.client.HTTPConnection(host, self._parts.port, timeout=self._timeout)
        context = ssl.create_default_context(cafile=self._certificate or None)
        return http.client.HTTPSConnection(host, self._parts.port, timeout=self._timeout, context=context)

    def close(self) -> None:
        if self._http is not None:
            self._http.close()
            self._http = None


def connect_team(membership: Membership, timeout: float = TIMEOUT_S) -> TeamConnection:
    return TeamConnection(membership.url, membership.token, membership.certificate, timeout)


def check_server(connection: TeamConnection) -> None:
    """Before a code is sent to it: whether it is a team server of a compatible version."""
    health = connection.request("GET", "/health", protocol.Health)
    if health.version < protocol.OLDEST_VERSION:
        raise CommandRefused(
            f"the server speaks version {health.version}, this machine {protocol.OLDEST_VERSION} or newer",
            fix="Update Holdfast on the server.",
        )


def _refusal_from_answer(status: int, answer: bytes) -> TeamRefused:
    try:
        problem = msgspec.json.decode(answer, type=protocol.Problem)
    except msgspec.DecodeError:
        problem = protocol.Problem(error=f"the server answered {status}")
    return TeamRefused(status, problem.error, problem.fix)


def error_from_answer(status: int, answer: bytes) -> HoldfastError:
    """A server that is busy or down is no refusal: retry."""
    refused = _refusal_from_answer(status, answer)
    if status in (408, 425, 429) or status >= 500:
        return TeamUnreachable(refused.detail, fix=refused.fix)
    return refused


def rotate_token(paths: Paths, now: int) -> Membership:
    """Replace this machine's token. Interrupted at any point, it is repeated with the same new token."""
    files = TeamFiles(paths)
    with files.locked("membership.lock"):
        membership = need_membership(paths)
        new = membership.next_token or f"hft_{secrets.token_urlsafe(32)}"
        files.save_membership(msgspec.structs.replace(membership, next_token=new))
        hashed = hashlib.sha256(new.encode()).hexdigest()
        told = connect_team(membership).request(
            "POST", "/v1/rotate", protocol.RotateAnswer, protocol.RotateRequest(token_hash=hashed)
        )
        # A server older than this machine makes the token itself.
        changed = msgspec.structs.replace(membership, token=told.token or new, next_token="", rotated_at=now)
        files.save_membership(changed)
    return changed


# ── leases of this machine ───────────────────────────────────────────────────────────────────────────────────────────


def maintain_leases(files: TeamFiles, connection: TeamConnection) -> None:
    """Renew leases of living processes and return those of dead ones."""
    if not files.leases():
        return
    with files.changing_leases() as leases:
        for lease in list(leases):
            if _maintain_lease(lease, connection) is None:
                leases.remove(lease)


def _is_owner_alive(lease: OwnLease) -> bool:
    if not lease.pid:
        return True
    # The pid may have been reused: the start time must match.
    seen = look_up_process(lease.pid)
    return seen is not None and seen.start == lease.start


def _maintain_lease(lease: OwnLease, connection: TeamConnection) -> OwnLease | None:
    """None if it is over."""
    asked_at = steady_ms()
    alive = _is_owner_alive(lease)
    # Renewed after 30 % of its time: `until` is at 90 % of it.
    if alive and lease.until - asked_at > lease.ttl_s * 1000 * 0.6:
        return lease
    request = protocol.LeaseRequest(
        act="renew" if alive else "release", project=lease.project, name=lease.name, session=lease.session,
        token=lease.token,
    )  # fmt: skip
    try:
        answer = connection.request("POST", "/v1/lease", protocol.LeaseAnswer, request)
    except TeamRefused:
        return None
    except TeamUnreachable:
        # While the server is unreachable, a lease is relied on for the rest of its time, and no longer.
        return lease if alive and asked_at < lease.until else None
    held = rely_on_lease(answer.token, lease.ttl_s, asked_at) if alive and answer.granted else None
    if held is None:
        return None
    lease.until = held.until
    return lease
