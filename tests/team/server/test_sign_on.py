"""Single sign-on against an OpenID Connect provider on loopback: discovery, code, signed statement, refusals."""

import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.testclient import TestClient

from holdfast.core.errors import CommandRefused
from holdfast_team.server.app import TeamServer
from holdfast_team.server.database import migrate_database
from holdfast_team.server.run import set_sign_on
from holdfast_team.server.sign_on import Provider, SignOnSettings
from holdfast_team.server.tenancy import Refused
from tests.kit import awaited
from tests.team.conftest import Joined

oidc_provider_mock = pytest.importorskip("oidc_provider_mock")
CLIENT = "holdfast-team"


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with oidc_provider_mock.run_server_in_thread() as server:
        yield f"http://localhost:{server.server_port}"


@pytest.fixture(scope="module")
def client(team_url: str) -> Iterator[TestClient]:
    """A server that has a secret at the provider, as most providers want it."""
    migrate_database(team_url)
    server = TeamServer(team_url, connections=3, oidc_secret="as registered")
    with TestClient(server.build_app(), base_url="http://team.test") as client:
        yield client


@pytest.fixture
def team(team_url: str, issuer: str, new_team: Callable[[], Joined]) -> Joined:
    """A team whose people sign on by the provider."""
    ann = new_team()
    set_sign_on(team_url, ann.enrolled["tenant"], SignOnSettings(issuer, CLIENT, domain="example.org"))
    return ann


def somebody(issuer: str, name: str, verified: bool = True, **claims: Any) -> str:
    said = {"email": name, "email_verified": verified, **claims}
    subject = f"subject-of-{name}"
    assert httpx.put(f"{issuer}/users/{quote(subject)}", json=said).status_code == 204
    return subject


def come_back(client: TestClient, tenant: str, subject: str, purpose: str = "board") -> Any:
    """What a browser does: to the provider, its form, and back."""
    begun = client.get(f"/sign-on/{tenant}?for={purpose}", follow_redirects=False)
    assert begun.status_code == 303, begun.text
    agreed = httpx.post(begun.headers["location"], data={"sub": subject})
    assert agreed.status_code == 302, agreed.text
    back = urlsplit(agreed.headers["location"])
    return client.get(f"{back.path}?{back.query}", follow_redirects=False)


def test_a_person_of_the_domain_signs_on_sees_the_board_and_joins_a_machine(
    client: TestClient, team: Joined, issuer: str
) -> None:
    tenant, subject = team.enrolled["tenant"], somebody(issuer, "Zoe@Example.org")
    answer = come_back(client, tenant, subject)
    assert answer.status_code == 200, answer.text
    assert "You are zoe@example.org" in answer.text
    assert "You are zoe@example.org, member" in client.get("/board").text
    client.cookies.clear()
    page = come_back(client, tenant, subject, "join").text
    code = next(line for line in page.replace("<", "\n").replace(">", "\n").split("\n") if line.startswith("join_"))
    zoe = Joined(client, code)
    assert (zoe.enrolled["person"], zoe.enrolled["role"]) == ("zoe@example.org", "member")
    team.ask("POST", "/v1/revoke", json={"person": "zoe@example.org"})
    assert "was revoked" in come_back(client, tenant, subject).json()["error"]
    assert {"person.signed_on", "code.issued"} <= {row["act"] for row in team.ask("GET", "/v1/audit")}
    client.cookies.clear()


def test_who_is_not_of_the_domain_not_verified_or_somebody_else_of_the_same_name_stays_out(
    client: TestClient, team: Joined, issuer: str
) -> None:
    tenant = team.enrolled["tenant"]
    stranger = come_back(client, tenant, somebody(issuer, "eve@example.org.evil.test"))
    assert (stranger.status_code, "is not in this team" in stranger.text) == (403, True)
    assert "not verified" in come_back(client, tenant, somebody(issuer, "mallory@example.org", verified=False)).text
    assert come_back(client, tenant, somebody(issuer, "kim@example.org")).status_code == 200
    other = "another-subject"
    httpx.put(f"{issuer}/users/{other}", json={"email": "kim@example.org", "email_verified": True})
    assert "another person" in come_back(client, tenant, other).json()["error"]
    client.cookies.clear()


def test_a_sign_on_counts_once_and_in_its_own_browser_only(client: TestClient, team: Joined, issuer: str) -> None:
    tenant, subject = team.enrolled["tenant"], somebody(issuer, "pat@example.org")
    begun = client.get(f"/sign-on/{tenant}", follow_redirects=False)
    back = urlsplit(httpx.post(begun.headers["location"], data={"sub": subject}).headers["location"])
    kept = dict(client.cookies)
    client.cookies.clear()
    assert "another browser" in client.get(f"/sign-on/callback?{back.query}").json()["error"]
    client.cookies.update(kept)
    assert client.get(f"/sign-on/callback?{back.query}").status_code == 200
    client.cookies.update(kept)
    assert "was used" in client.get(f"/sign-on/callback?{back.query}").json()["error"]
    foreign = parse_qs(back.query)["state"][0].replace(tenant, "furnished")
    assert client.get(f"/sign-on/callback?state={foreign}&code=x").status_code in (401, 404)
    assert client.get("/sign-on/nobody-at-all", follow_redirects=False).status_code == 404
    assert "denied" in client.get("/sign-on/callback?error=access_denied").text
    client.cookies.clear()


def test_a_provider_without_tls_elsewhere_is_refused(team_url: str, team: Joined) -> None:
    with pytest.raises(CommandRefused, match="https"):
        set_sign_on(team_url, team.enrolled["tenant"], SignOnSettings("http://provider.example.org", CLIENT))


# ── statements that the provider did not make like this ──────────────────────────────────────────────────────────────


class Forger:
    """Signs with a key of its own, which the provider of the test publishes."""

    def __init__(self) -> None:
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.provider = Provider("https://provider.test")
        published = {
            **jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True),
            "kid": "k",
            "alg": "RS256",
        }
        self.provider._keys = time.monotonic() + 60, jwt.PyJWKSet.from_dict({"keys": [published]})
        self.provider._addresses = time.monotonic() + 60, {"jwks_uri": "http://nowhere.test/keys"}

    def statement(self, kid: str = "k", algorithm: str = "RS256", key: Any = None, **changed: Any) -> str:
        now = int(time.time())
        claims = {
            "iss": "https://provider.test", "aud": CLIENT, "sub": "s", "nonce": "n", "iat": now, "exp": now + 60, **changed,
        }  # fmt: skip
        kept = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(kept, self.key if key is None else key, algorithm, {"kid": kid})


@pytest.fixture(scope="module")
def forger() -> Forger:
    return Forger()


@pytest.mark.parametrize(
    "changed",
    [
        {"iss": "https://other.test"},
        {"aud": "another-program"},
        {"aud": [CLIENT, "another-program"]},
        {"exp": 1},
        {"exp": None},
        {"iat": int(time.time()) + 3600},
        {"nonce": "of another sign-on"},
        {"nonce": None},
        {"sub": None},
        {"algorithm": "none", "key": ""},
        {"algorithm": "HS256", "key": "a secret that is long enough for this"},
        {"key": rsa.generate_private_key(public_exponent=65537, key_size=2048)},
        {"kid": "unknown"},
    ],
    ids=lambda changed: "+".join(changed),
)
def test_a_statement_that_is_not_in_order_is_refused(forger: Forger, changed: dict[str, Any]) -> None:
    settings = SignOnSettings("https://provider.test", CLIENT)
    assert awaited(forger.provider.verify(settings, forger.statement(), "n"))["sub"] == "s"
    with pytest.raises(Refused):
        awaited(forger.provider.verify(settings, forger.statement(**changed), "n"))
