"""Single sign-on by OpenID Connect: the authorization-code flow with PKCE, for the board and for joining a machine."""

# `GET /sign-on/TENANT` redirects a browser to the tenant's provider; `GET /sign-on/callback` receives it back. Claims
# count only after signature, issuer, audience, time and nonce are checked, and only for the browser that started.

import asyncio
import base64
import hashlib
import json
import secrets
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlencode, urlsplit

import jwt
import msgspec

from holdfast.core.network import is_loopback
from holdfast_team.protocol import LONGEST_NAME, CodeIssued, Role, role_allows
from holdfast_team.server.database import TeamDatabase, TenantTransaction
from holdfast_team.server.tenancy import Act, Member, Refused, hash_secret, new_secret

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures with the provider's key; never `none`, and none with a shared secret."""
# Milliseconds.
ATTEMPT_MS, CODE_MS, COOKIE_MS = 600_000, 600_000, 12 * 3_600_000
# Seconds, bytes, seconds, and the tolerated difference of the provider's clock in seconds.
TIMEOUT_S, MOST_BYTES, KEPT_S, LEEWAY_S = 5.0, 1 << 20, 600.0, 60
Purpose = Literal["board", "join"]


class SignOnSettings(msgspec.Struct, frozen=True):
    """How a tenant signs on. Without a domain only existing members may."""

    issuer: str
    client_id: str
    claim: str = "email"
    """The claim that names a person."""
    domain: str = ""
    """People with a name in this domain join by signing on, in `role`."""
    role: Role = "member"


class SignedOn(msgspec.Struct, frozen=True):
    person: str
    subject: str
    """The provider and its id for the person, to notice a name that was reassigned."""


def is_safe_address(url: str) -> bool:
    """Codes and claims travel encrypted, except on this machine itself."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)))


# ── the provider ─────────────────────────────────────────────────────────────────────────────────────────────────────


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A provider's addresses do not move; a redirect is not followed with secrets."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class Provider:
    """What is known of one issuer, cached for ten minutes. Requests run in threads, because they wait for the network."""

    def __init__(self, issuer: str, secret: str = "") -> None:
        self.issuer, self._secret = issuer, secret
        self._opener = urllib.request.build_opener(_NoRedirect)
        self._addresses: tuple[float, Mapping[str, Any]] | None = None
        self._keys: tuple[float, jwt.PyJWKSet] | None = None

    async def addresses(self) -> Mapping[str, Any]:
        if not self._addresses or time.monotonic() > self._addresses[0]:
            found = await self._fetch(f"{self.issuer.rstrip('/')}/.well-known/openid-configuration")
            # Required by OpenID Connect Discovery: no provider may speak for another one.
            if found.get("issuer") != self.issuer:
                raise Refused(502, "the provider calls itself by another name than its settings here")
            self._addresses = time.monotonic() + KEPT_S, found
        return self._addresses[1]

    async def exchange(self, settings: SignOnSettings, code: str, verifier: str, redirect: str) -> str:
        """Return the signed claims for the code that the browser brought."""
        form = {
            "grant_type": "authorization_code", "code": code, "redirect_uri": redirect, "client_id": settings.client_id,
            "code_verifier": verifier,
        }  # fmt: skip
        answer = await self._fetch(str((await self.addresses())["token_endpoint"]), form, settings.client_id)
        return str(answer.get("id_token") or "")

    async def verify(self, settings: SignOnSettings, token: str, nonce: str) -> Mapping[str, Any]:
        try:
            # Not verified yet, but it only selects the published key that the signature must match.
            key = await self._key_for(str(jwt.get_unverified_header(token).get("kid") or ""))
            claims: dict[str, Any] = jwt.decode(
                token, key.key, algorithms=ALGORITHMS, audience=settings.client_id, issuer=self.issuer, leeway=LEEWAY_S,
                options={"require": ["exp", "iat", "sub", "nonce"]},
            )  # fmt: skip
        except jwt.PyJWTError as error:
            raise Refused(401, f"what the provider said is not in order: {error}") from error
        if not secrets.compare_digest(str(claims["nonce"]).encode(), nonce.encode()):
            raise Refused(401, "what the provider said belongs to another sign-on")
        # With several audiences `azp` names the one the token was issued to.
        if isinstance(claims.get("aud"), list) and len(claims["aud"]) > 1 and claims.get("azp") != settings.client_id:
            raise Refused(401, "what the provider said is for another program")
        return claims

    async def _key_for(self, kid: str) -> jwt.PyJWK:
        for fresh in (False, True):
            keys = await self._key_set(fresh)
            for key in keys.keys:
                if key.key_id == kid or (not kid and len(keys.keys) == 1):
                    return key
        raise jwt.InvalidKeyError("it is signed with a key that the provider does not publish")

    async def _key_set(self, fresh: bool) -> jwt.PyJWKSet:
        """An unknown key triggers a reload, because providers rotate keys."""
        if fresh or not self._keys or time.monotonic() > self._keys[0]:
            found = await self._fetch(str((await self.addresses())["jwks_uri"]))
            self._keys = time.monotonic() + KEPT_S, jwt.PyJWKSet.from_dict(dict(found))
        return self._keys[1]

    async def _fetch(self, url: str, form: Mapping[str, str] | None = None, client: str = "") -> Mapping[str, Any]:
        if not is_safe_address(url):
            raise Refused(502, "the provider names an address without TLS")
        request = urllib.request.Request(url, urlencode(form).encode() if form else None)  # noqa: S310 - checked above
        if form and self._secret:
            # RFC 6749 requires both parts form-encoded before they are joined.
            pair = f"{urllib.parse.quote(client, '')}:{urllib.parse.quote(self._secret, '')}"
            request.add_header("authorization", f"Basic {base64.b64encode(pair.encode()).decode()}")
        try:
            body = await asyncio.to_thread(self._read, request)
            found = json.loads(body)
        except (OSError, ValueError) as error:
            raise Refused(502, f"the provider did not answer as expected: {str(error)[:200]}") from error
        if not isinstance(found, dict):
            raise Refused(502, "the provider did not answer as expected")
        return found

    def _read(self, request: urllib.request.Request) -> bytes:
        with self._opener.open(request, timeout=TIMEOUT_S) as answer:
            body: bytes = answer.read(MOST_BYTES)
            return body


# ── a sign-on ────────────────────────────────────────────────────────────────────────────────────────────────────────


class SignOn:
    """Started by one process, perhaps finished by another: its state is in the database."""

    def __init__(self, database: TeamDatabase, secret: str = "") -> None:
        self._database, self._secret = database, secret
        self._providers: dict[str, Provider] = {}

    def provider(self, settings: SignOnSettings) -> Provider:
        return self._providers.setdefault(settings.issuer, Provider(settings.issuer, self._secret))

    async def begin(self, tenant: str, purpose: Purpose, redirect: str, now: int) -> tuple[str, str]:
        """Return (where the browser goes, what it keeps until it returns)."""
        # For `state`, against replayed tokens, and for PKCE.
        secret, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        async with self._database.transaction(tenant) as tx:
            settings = await self._settings(tx)
            await tx.execute(ADD_ATTEMPT, {
                "hash": hash_secret(secret), "nonce": nonce, "verifier": verifier, "purpose": purpose,
                "until": now + ATTEMPT_MS,
            })  # fmt: skip
        # PKCE's S256: base64url of the hash, without padding.
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        asked = {
            "response_type": "code", "client_id": settings.client_id, "redirect_uri": redirect, "nonce": nonce,
            "scope": "openid email profile", "state": f"{tenant}.{secret}", "code_challenge": challenge,
            "code_challenge_method": "S256",
        }  # fmt: skip
        where = str((await self.provider(settings).addresses())["authorization_endpoint"])
        return f"{where}{'&' if '?' in where else '?'}{urlencode(asked)}", secret

    async def finish(self, state: str, code: str, kept: str, redirect: str, now: int) -> tuple[Member, Purpose]:
        tenant, _, secret = state.partition(".")
        # Only the browser that started has the cookie: nobody can be signed on by somebody else's callback link.
        if not secret or not kept or not secrets.compare_digest(secret.encode(), kept.encode()):
            raise Refused(401, "this sign-on was begun in another browser", "Begin again.")
        async with self._database.transaction(tenant) as tx:
            settings = await self._settings(tx)
            attempt = await tx.one(TAKE_ATTEMPT, {"hash": hash_secret(secret), "now": now})
        if attempt is None:
            raise Refused(401, "this sign-on is not known, was used, or is too old", "Begin again.")
        # The provider is asked between two transactions, so that none is held open for the network.
        provider = self.provider(settings)
        token = await provider.exchange(settings, code, attempt["verifier"], redirect)
        signed = name_person(settings, await provider.verify(settings, token, attempt["nonce"]))
        async with self._database.transaction(tenant) as tx:
            return await admit_person(tx, settings, signed, now), attempt["purpose"]

    async def _settings(self, tx: TenantTransaction) -> SignOnSettings:
        row = await tx.one("select issuer, client_id, claim, domain, role from sign_on where tenant = %(tenant)s")
        if row is None:
            raise Refused(404, "this team does not sign on by a provider", "Ask an admin of your team for a code.")
        return SignOnSettings(**row)


ADD_ATTEMPT = """
insert into sign_on_attempts (tenant, state_hash, nonce, verifier, purpose, until)
values (%(tenant)s, %(hash)s, %(nonce)s, %(verifier)s, %(purpose)s, %(until)s)
"""
TAKE_ATTEMPT = """
delete from sign_on_attempts where tenant = %(tenant)s and state_hash = %(hash)s and until > %(now)s
returning nonce, verifier, purpose
"""


def name_person(settings: SignOnSettings, claims: Mapping[str, Any]) -> SignedOn:
    name = claims.get(settings.claim)
    if not isinstance(name, str) or not name.strip() or len(name) > LONGEST_NAME:
        raise Refused(403, f"the provider does not say who you are ({settings.claim})")
    # Without this anybody could claim an address at the provider.
    if settings.claim == "email" and claims.get("email_verified") is not True:
        raise Refused(403, "the provider has not verified this address")
    return SignedOn(name.strip().lower(), f"{settings.issuer} {claims['sub']}")


async def admit_person(tx: TenantTransaction, settings: SignOnSettings, signed: SignedOn, now: int) -> Member:
    """Admit an existing member, or somebody whose domain joins by signing on."""
    row = await tx.one(LOCK_PERSON, {"person": signed.person})
    named = {"person": signed.person, "subject": signed.subject, "role": settings.role, "now": now}
    if row is None:
        if not settings.domain or not signed.person.endswith(f"@{settings.domain.lower()}"):
            raise Refused(403, f"{signed.person} is not in this team", "Ask an admin of your team for a code.")
        await tx.execute(ADD_PERSON, named)
        who = Member(tx.tenant, "", signed.person, settings.role)
        await Act(tx, "", who, now).audit("person.signed_on", {"person": signed.person, "role": settings.role})
        return who
    if row["blocked_at"]:
        raise Refused(403, f"{signed.person} was revoked", "Ask an admin of your team.")
    if row["subject"] not in ("", signed.subject):
        raise Refused(403, f"{signed.person} is another person at the provider", "Ask an admin of your team.")
    await tx.execute(BIND_PERSON, named)
    return Member(tx.tenant, "", signed.person, row["role"])


LOCK_PERSON = (
    "select role, blocked_at, subject from people where tenant = %(tenant)s and person = %(person)s for update"
)
ADD_PERSON = """
insert into people (tenant, person, role, added_at, subject) values (%(tenant)s, %(person)s, %(role)s, %(now)s, %(subject)s)
"""
BIND_PERSON = "update people set subject = %(subject)s where tenant = %(tenant)s and person = %(person)s"


async def open_page(database: TeamDatabase, who: Member, now: int) -> str:
    """Create the browser's session for the board."""
    cookie = new_secret("page")
    async with database.transaction(who.tenant) as tx:
        await tx.execute(
            "insert into browser_sessions (tenant, hash, machine, person, kind, until)"
            " values (%(tenant)s, %(hash)s, '', %(person)s, 'cookie', %(until)s)",
            {"hash": hash_secret(cookie), "person": who.person, "until": now + COOKIE_MS},
        )
    return cookie


async def issue_own_code(database: TeamDatabase, who: Member, now: int) -> CodeIssued:
    """Create a code for a machine of the person who signed on, with their role."""
    role: Role = next(one for one in ("admin", "lead", "member", "viewer") if role_allows(who.role, one))
    code, until = new_secret("join"), now + CODE_MS
    async with database.transaction(who.tenant) as tx:
        await tx.execute(
            "insert into codes (tenant, code_hash, person, role, until)"
            " values (%(tenant)s, %(hash)s, %(person)s, %(role)s, %(until)s)",
            {"hash": hash_secret(code), "person": who.person, "role": role, "until": until},
        )
        await Act(tx, "", who, now).audit("code.issued", {"person": who.person, "role": role, "by": "sign-on"})
    return CodeIssued(code=code, person=who.person, role=role, until=until)
