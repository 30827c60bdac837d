"""Secrets go, everything else stays byte for byte, JSON stays JSON, and no input takes long."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.analysis.redact import Redactor, decoded_forms, redact
from holdfast.analysis.redact.rule_data import RULES
from tests.analysis.redact.examples import make_example

# Put together here, so that no scanner of repositories finds a secret in this file.
RANDOM = "aB3dE5gH7jK9mN1pQ3sT5vW7xY9zA2cD4fG6hJ8kL0"
HEX = "3fa9c04b" * 5
UPPER = "Q3XZ7RM2K9TLV5WP"
ANTHROPIC = "sk-" + "ant-api03-" + RANDOM
OPENAI = "sk-" + RANDOM
PROJECT = "sk-" + "proj-" + RANDOM
GITHUB = "gh" + "p_" + RANDOM[:36]
PAT = "github" + "_pat_" + RANDOM
SLACK = "xox" + "b-123456789012-" + RANDOM[:24]
AWS = "AK" + "IA" + UPPER
AWS_TEMPORARY = "AS" + "IA" + UPPER
AWS_SECRET = "wJalrXUtn" + "FEMI/K7MDENG+bPxRfiCYqW3rTz9uVb"
GOOGLE = "AI" + "za" + RANDOM[:35]
GITLAB = "gl" + "pat-" + RANDOM[:20]
NPM = "np" + "m_" + RANDOM[:36]
PYPI = "py" + "pi-AgEIcHlwaS5vcmc" + RANDOM
HUGGING = "h" + "f_" + RANDOM[:34]
SENDGRID = "S" + "G." + RANDOM[:22] + "." + RANDOM[:42]
STRIPE = "sk" + "_live_" + RANDOM[:24]
STRIPE_TEST = "sk" + "_test_" + RANDOM[:24]
RESTRICTED = "rk" + "_live_" + RANDOM[:24]
GROQ = "gs" + "k_" + RANDOM
JWT = "ey" + "JhbGciOiJIUzI1NiJ9." + "ey" + "JzdWIiOiIxMjM0NTY3ODkwIn0." + RANDOM
AGE = "AGE-" + "SECRET-KEY-1" + UPPER * 4
BASIC = "Ym9iOmh1bnRlcjJ" + "odW50ZXIy"
KEY_LINES = "\n".join(["MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" + RANDOM[:32]] * 3)
PEM = "-----BEGIN " + f"RSA PRIVATE KEY-----\n{KEY_LINES}\n-----END RSA PRIVATE KEY-----"
OPENSSH = "-----BEGIN " + f"OPENSSH PRIVATE KEY-----\n{KEY_LINES}\n-----END OPENSSH PRIVATE KEY-----"
HOOK = "https://hooks." + "slack.com/services/T0A1B2C3D/B0A1B2C3D/" + RANDOM[:24]
DISCORD = "https://discord.com/" + f"api/webhooks/123456789012345678/{RANDOM}"

# (text, the secret in it)
SECRETS = [
    (f"export ANTHROPIC_API_KEY={ANTHROPIC}", ANTHROPIC),
    (f"key is {OPENAI}.", OPENAI),
    (f"OPENAI_API_KEY='{PROJECT}'", PROJECT),
    (f"git clone https://{GITHUB}@github.com/a/b", GITHUB),
    (f"line\n{GITHUB}\nline", GITHUB),
    (f"({PAT})", PAT),
    (f"\u201c{GITHUB}\u201d", GITHUB),
    (f"\u00fc{OPENAI}", OPENAI),
    *(
        (f"token {prefix}{RANDOM[:36]} ok", RANDOM[:36])
        for prefix in ("gh" + "o_", "gh" + "u_", "gh" + "s_", "gh" + "r_")
    ),
    (f"slack: {SLACK}", SLACK),
    ("xox" + f"p-1-2-{RANDOM}", RANDOM),
    ("xa" + f"pp-1-A0-{RANDOM}", RANDOM),
    (f"aws_access_key_id = {AWS}", AWS),
    (f"tab\t{AWS_TEMPORARY}\n", AWS_TEMPORARY),
    (f"[default]\naws_secret_access_key = {AWS_SECRET}\nregion = x", AWS_SECRET),
    (f"export AWS_SECRET_ACCESS_KEY={AWS_SECRET}", AWS_SECRET),
    (f'{{"SecretAccessKey": "{AWS_SECRET}"}}', AWS_SECRET),
    (f"https://maps.googleapis.com/x?key={GOOGLE}&a=1", GOOGLE),
    (f"GITLAB={GITLAB}", GITLAB),
    (f"//registry.example.org/:_authToken={NPM}", NPM),
    (f"password = {PYPI}", PYPI),
    (f"HF_TOKEN={HUGGING}", HUGGING),
    (f'login("{HUGGING}")', HUGGING),
    (f"SENDGRID {SENDGRID}", SENDGRID),
    (f"stripe.api_key = '{STRIPE}'", STRIPE),
    (STRIPE_TEST, STRIPE_TEST),
    (f"restricted {RESTRICTED}", RESTRICTED),
    (f"groq\n{GROQ}", GROQ),
    (f"Cookie: session={JWT}; Path=/", JWT),
    (f"jwt {JWT}", JWT),
    (f"# key\n{AGE}\n", AGE),
    (f"before\n{PEM}\nafter", KEY_LINES),
    (OPENSSH, KEY_LINES),
    (PEM[:-40], "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"),
    (f"curl -X POST {HOOK}", RANDOM[:24]),
    (f"url={DISCORD}", RANDOM),
    ("password=hunter2", "hunter2"),
    ("PASSWORD=correcthorse", "correcthorse"),
    ("DB_PASSWORD=s3cr3t!pass", "s3cr3t!pass"),
    ('password = "hunter2"', "hunter2"),
    ("password: 'tr0ub4dor&3'", "tr0ub4dor&3"),
    ("db:\n  password: supersecret\n  host: x", "supersecret"),
    ('{"password": "hunter2"}', "hunter2"),
    ('{"user":"a","password":"ab\\"cd\\\\ef","x":1}', 'ab\\"cd'),
    ('{"passwd" : "Pa55"}', "Pa55"),
    ('{"userPassword": "geheim99"}', "geheim99"),
    ('{"password": 12345678}', "12345678"),
    ("mysql --password=hunter2 -u root", "hunter2"),
    ("tool --db-password hunter2 --verbose", "hunter2"),
    ("Server=x;Uid=sa;Pwd=Str0ng!Pass;", "Str0ng!Pass"),
    ("password: str = 'hunter22'", "hunter22"),
    ("PGPASSWORD=hunter2 psql", "hunter2"),
    ("if password == 'letmein1':", "letmein1"),
    ("postgresql://app:s3cretpw@db.internal:5432/app", "s3cretpw"),
    ("redis://:longredispass@cache:6379/0", "longredispass"),
    ("mongodb+srv://u:p%40ss@cluster0.mongodb.net", "p%40ss"),
    ("https://bob:hunter2@example.org/path", "hunter2"),
    (f'"api_key": "{RANDOM[:24]}"', RANDOM[:24]),
    (f"apiKey: '{RANDOM[:24]}',", RANDOM[:24]),
    (f"X-Api-Key: {HEX[:32]}", HEX[:32]),
    (f"client_secret={RANDOM}", RANDOM),
    (f'{{"client_secret": "{RANDOM}"}}', RANDOM),
    (f"SECRET_KEY = '{RANDOM}'", RANDOM),
    (f"secret_key_base: {HEX * 2}", HEX * 2),
    (f"access_token={RANDOM}&expires=3600", RANDOM),
    (f'{{"refresh_token":"1//0g{RANDOM}"}}', RANDOM),
    (f"AccountName=x;AccountKey={RANDOM * 2}==;", RANDOM * 2),
    (f"Authorization: Bearer {RANDOM}", RANDOM),
    (f"curl -H 'Authorization: token {HEX}' https://api.x", HEX),
    ('"Authorization": "Basic dXNlcjpodW50ZXIyMTIzNA=="', "dXNlcjpodW50ZXIyMTIzNA=="),
    (f"authorization={RANDOM}", RANDOM),
    (f'- name: API_TOKEN\n  value: "{RANDOM}"', RANDOM),
    ('{"name": "DB_PASSWORD", "value": "hunter2"}', "hunter2"),
    (f"token: token: {RANDOM}", RANDOM),
    (f'signing_key => "{RANDOM}"', RANDOM),
    ("passphrase=hunter2", "hunter2"),
    ('{"passphrase": "correct horse battery staple"}', "correct horse battery staple"),
    ("KEY_PASSPHRASE='tr0ub4dor&3'", "tr0ub4dor&3"),
    ("gpg --batch --passphrase hunter2 -c file", "hunter2"),
    ('{"auths": {"https://index.docker.io/v1/": {"auth": "' + BASIC + '"}}}', BASIC),
    (f"//registry.example.org/:_auth={BASIC}", BASIC),
    (f"auth: {BASIC}", BASIC),
    ("curl -u admin:s3cr3t!pass https://x.example/api", "s3cr3t!pass"),
    ("curl -s -X POST --user bob:hunter2 -d @f https://x.example", "hunter2"),
    ("curl --user='bob:hunter 2' https://x.example", "hunter 2"),
    ('["curl", "-u", "bob:hunter2", "https://x.example"]', "hunter2"),
    ("echo a; curl -ubob:hunter2 https://x.example | jq .", "hunter2"),
    (f"Cookie: sessionid={HEX[:32]}; theme=dark", HEX[:32]),
    (f"Set-Cookie: SID={RANDOM[:26]}; Path=/; HttpOnly", RANDOM[:26]),
    (f'{{"Cookie": "a=1; csrftoken={RANDOM[:32]}; b=2"}}', RANDOM[:32]),
    (f"curl --cookie 'auth={HEX}' https://x.example", HEX),
    ("Cookie: PHPSESSID=r2t5uvjq435r4q7ib3vtdjq120", "r2t5uvjq435r4q7ib3vtdjq120"),
    ("set-cookie: connect.sid=s%3AaBcDeFgH1234.sIgNaTuRe99; Path=/", "aBcDeFgH1234"),
]

DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
INNOCENT = [
    "commit 3fa9c04b1d5e7f8091a2b3c4d5e6f708192a3b4c",
    "HEAD is now at 3fa9c04 fix: token handling",
    '{"session_id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890"}',
    '"tool_use_id": "toolu_01A09q90qw90lq917835lq9"',
    f"sha256:{DIGEST}",
    f"{DIGEST}  dist/app.tar.gz",
    '"integrity": "sha512-v2kDEe57lecTulaDIuNTPy3Ry4gLGJ6Z1O3vE1krgXZNrsQ+LFTGHVxVjcXPs17LhbZVGedAJv8XZ1tvj5FvSg=="',
    f'hash = "{DIGEST}"',
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "//# sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbXX0=",
    "def login(username: str, password: str) -> Token:",
    "password: Optional[str] = None",
    "password = get_password()",
    "password = os.environ['DB_PASSWORD']",
    "password=password, token=token",
    "connect(host, password=settings.db.password)",
    "self.password = password",
    "this.token = options.token;",
    "const token = await getToken(user);",
    "let apiKey = process.env.API_KEY;",
    "api_key=os.getenv('API_KEY')",
    "export PASSWORD=$DB_PASSWORD",
    "PASSWORD=${DB_PASSWORD:-}",
    'password: "{{ vault_password }}"',
    "password: <your password>",
    '"password": "********"',
    '"password": ""',
    '"password": null',
    '"password": "string"',
    '{"type": "object", "properties": {"password": {"type": "string", "minLength": 8}}}',
    '<input type="password" name="password" id="password">',
    "Enter your password: ",
    '"password": "Please enter your password"',
    "passwordless login is password-free",
    "the password must have 8 characters",
    '"usage": {"input_tokens": 1500, "output_tokens": 400, "max_tokens": 4096}',
    "tokens = tokenizer.encode(text)",
    'token = "identifier"',
    '"token": "comma"',
    "token_count: 128000",
    "next_token = self.tokens[self.pos2]",
    "for key, value in items.items():",
    'key = "user:12345:profile"',
    'cache_key = f"{name}-{version}"',
    '"key": "items.0.name1"',
    "primary_key=True, foreign_key=user.id",
    "public_key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQ\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----",
    "secrets: inherit",
    "secretName: my-secret",
    "secret: my-app-secret-name",
    "import secrets; secrets.token_hex(16)",
    "kubectl get secret my-secret-1",
    "Authorization: Bearer $TOKEN",
    'headers["Authorization"] = f"Bearer {token}"',
    'headers = {"Authorization": "Bearer " + token}',
    "Authorization: Bearer YOUR_ACCESS_TOKEN_HERE",
    "https://user@example.org/path",
    "postgresql://app:${PGPASSWORD}@db/app",
    "git@github.com:owner/repo.git",
    "see https://example.org:8443/a@b",
    "npm_config_registry=https://registry.example.org",
    "npm_package_version_string_is_long_enough_really",
    "task-management-system-with-a-long-name",
    ".sk-fading-circle-with-a-very-long-name { }",
    "risk_live_assessment",
    "$ pwd\n/home/u/project",
    "PWD=/home/u/project",
    "OLDPWD=/home/u/p2",
    '"pwd": "/home/u/p"',
    "api_key: YOUR_API_KEY",
    "access_key=None",
    "AKIA is the prefix, ASIA too, AIza as well",
    "SG.something.else",
    "eyJ is how a JWT begins",
    "ghp_short gho_ hf_model npm_",
    "xoxo, kisses",
    "private_key_path = '/etc/ssl/private/key.pem'",
    "encryption_key_id = 'projects/a/locations/b'",
    '{"api_key": {"description": "the key"}, "token": true}',
    "the authorization header is required: see authorization.md",
    "hooks.slack.com is where webhooks live",
    "password123 is a bad one",
    "use the --username and --password options",
    "e.g. `https` in `https://user:pass@host:port`",
    "'ASAuthorization', 'ASAuthorizationAppleIDProvider2'",
    "Enter passphrase for key '/home/u/.ssh/id_ed25519': ",
    '"passphrase": "Please enter the passphrase of your key"',
    "passphrase: str | None = None",
    "passphrase = getpass('passphrase: ')",
    "passphrase=passphrase, key=key",
    "auth: username",
    '"auth": "required"',
    '"auth": "bearer12"',
    "auth = HTTPBasicAuth(user, password)",
    "author: Ada1234567890",
    '{"auth": {"type": "basic"}}',
    "oauth: dXNlcjpodW50ZXIy",
    "curl -u user:pass https://x.example",
    "curl -u username:password https://x.example",
    'curl -u "$USER:$PASSWORD" https://x.example',
    "curl -u bob:${PASSWORD} https://x.example",
    "docker run -u 1000:1000 image",
    "curl https://x.example/a.tar && docker run -u 1000:1000 image",
    "curl https://x.example\nsudo -u www:data ls",
    "curl --user-agent Mozilla/5.0:abc99 https://x.example",
    "Cookie: theme=dark; lang=en-US",
    "Set-Cookie: sessionid=; Path=/; Max-Age=3600",
    "Cookie: session=<session-id>",
    "Cookie: session=${SESSION}",
    "response.set_cookie('session', value)",
    "document.cookie = 'name=value'",
    "cookies = request.cookies",
    "cookie jar = 5",
    "Cookie: sessionid=your_session_id",
]  # fmt: skip


TEXTS = st.one_of(
    st.text(),
    st.sampled_from([text for text, _ in SECRETS] + INNOCENT),
    st.lists(st.sampled_from(['password', 'token="', "=", ": ", '"', "\\", "\n", "sk-", RANDOM, "'", "key", "a", "1"]))
    .map("".join),
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def shape(body: bytes) -> bytes:
    """The JSON with every scalar and key as one mark: structure and nothing else."""
    return re.sub(rb'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null', b"v", body)


def both(text: str) -> list[bytes]:
    """As plain text, as a JSON string, and as a JSON string inside a JSON string."""
    return [text.encode(), json.dumps({"c": text}).encode(), json.dumps({"c": json.dumps({"c": text})}).encode()]


ESC = "\x1b"
TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
SPELT = {
    "octal": "".join(f"\\{ord(c):03o}" for c in TOKEN),
    "octal of a shell": "$'" + "".join(f"\\{ord(c):o}" for c in TOKEN) + "'",
    "braces": "".join(f"\\u{{{ord(c):x}}}" for c in TOKEN),
    "eight digits": "".join(f"\\U{ord(c):08x}" for c in TOKEN),
    "markdown": TOKEN.replace("_", "\\_"),
    "one colour": f"{TOKEN[:20]}{ESC}[0m{ESC}[31m{TOKEN[20:]}",
    "colours of grep": f"{ESC}[01;31m{ESC}[K{TOKEN[:6]}{ESC}[m{ESC}[K{TOKEN[6:]}",
    "a colour each": "".join(f"{ESC}[1;32m{c}" for c in TOKEN) + f"{ESC}[0m",
    "written colours": f"{TOKEN[:20]}\\u001b[0m{TOKEN[20:]}",
    "a link": f"{ESC}]8;;http://x.example{ESC}\\{TOKEN[:20]}{ESC}]8;;{ESC}\\{TOKEN[20:]}",
}


@pytest.mark.parametrize("spelt", SPELT.values(), ids=SPELT.keys())
def test_a_token_is_found_as_terminals_and_programs_write_it(spelt: str) -> None:
    text = f"before {spelt} behind"
    pieces = (TOKEN, TOKEN[20:], spelt[12:])
    cleaned, _ = Redactor().redact_text(text)
    body, _ = Redactor().redact(json.dumps({"tool_response": {"stdout": text}}).encode())
    for got in (cleaned, json.loads(body)["tool_response"]["stdout"]):
        assert not any(piece in got for piece in pieces), got
        assert got.startswith("before ") and got.rstrip(ESC + "[0m]8;\\").endswith(" behind"), got


def test_colours_and_octal_codes_of_ordinary_text_stay() -> None:
    for text in (
        f"{ESC}[32mpassed{ESC}[0m in {ESC}[1m3{ESC}[0ms",
        f"a{ESC}[1mb{ESC}[0mc",
        "tar \\101\\102 x",
        "'\\u{1F600}'",
    ):
        assert Redactor().redact_text(text) == (text, [])


def test_the_corpus_is_large_enough():
    assert len(SECRETS) >= 60
    assert len(INNOCENT) >= 60


@pytest.mark.parametrize(("text", "secret"), SECRETS, ids=range(len(SECRETS)))
def test_a_secret_goes(text, secret):
    for body, needle in zip(both(text)[:2], both(secret)[:2], strict=True):
        gone, count = redact(body)
        inner = needle if body == text.encode() else needle[len('{"c": "') : -len('"}')]
        assert inner not in gone, gone
        assert count >= 1
        assert b"[redacted:" in gone


@pytest.mark.parametrize(("text", "secret"), SECRETS, ids=range(len(SECRETS)))
def test_escaped_text_stays_json_and_a_second_time_changes_nothing(text, secret):
    for body in both(text):
        gone, _ = redact(body)
        assert redact(gone) == (gone, 0)
    for body in both(text)[1:]:
        json.loads(redact(body)[0])


@pytest.mark.parametrize("text", INNOCENT, ids=range(len(INNOCENT)))
def test_everything_else_stays(text):
    for body in both(text):
        assert redact(body) == (body, 0)


def test_the_rest_of_the_text_stays():
    assert redact(b"a password=hunter2 b")[0] == b"a password=[redacted:password] b"
    assert redact(b'{"password": "hunter2", "n": 1}')[0] == b'{"password": "[redacted:password]", "n": 1}'
    assert redact(b"postgresql://app:s3cretpw@db/app")[0] == b"postgresql://app:[redacted:url-password]@db/app"


def test_a_value_that_a_program_repeats_in_its_own_words_goes_too():
    typed = "Tulip" + "Garden42x"
    call = {"element": "Password field", "ref": "e5", "text": typed}
    told = f'Typed "{typed}" into the second box. Not {typed}s, nor x{typed}.'
    gone, _ = redact(json.dumps({"tool_input": call, "tool_response": told}).encode())
    assert json.loads(gone)["tool_response"] == (
        f'Typed "[redacted:password]" into the second box. Not {typed}s, nor x{typed}.'
    )
    assert (
        typed not in json.loads(redact(json.dumps({"told": f"Typed {typed}", "tool_input": call}).encode())[0])["told"]
    )


def test_a_bare_number_becomes_a_string():
    assert json.loads(redact(b'{"password": 12345678, "n": 1}')[0]) == {"password": "[redacted:password]", "n": 1}


@pytest.mark.parametrize(
    "body",
    [
        '{"password=":12345,"b":"c"}',
        '{"password=\\\\":12345,"b":"c"}',
        '{"password\\\\":-12345,"b":"c"}',
        '{"authorization":12345678901.5e10,"token":1.2345678901e10}',
        '{"c":"{\\"password\\": 12345}"}',
        '["password","=abc12345",12345]',
    ],
)
def test_json_that_was_made_to_be_broken(body):
    json.loads(body)
    json.loads(redact(body.encode())[0])


def test_the_n_of_a_line_break_is_not_taken():
    body = b'{"c": "x\\' + NPM.encode() + b'"}'
    json.loads(redact(body)[0])


@pytest.mark.parametrize(
    "more", [{"api_password": RANDOM}, {"note": f"token={RANDOM}"}, {"more": {"tokens": {"password": RANDOM}}}]
)
def test_a_count_of_tokens_hides_no_secret_beside_it(more):
    counts = {"tokens": {"input": 12, "cache_read": 3400}}
    cleaned, found = redact(json.dumps(counts | more, separators=(",", ":")).encode())
    assert (RANDOM.encode() in cleaned, found) == (False, 1)
    assert redact(b'{"tokens":{"input":12,"output":7}}') == (b'{"tokens":{"input":12,"output":7}}', 0)


@pytest.mark.parametrize("between", [", ", ",\n  ", " ,\t"])
def test_every_row_of_an_insert_goes(between):
    words = ["Xk9#mP2vQ8zL", "Yt7!nR4wS1bM", "Zq5&hJ3cV6xN"]
    rows = between.join(f"('user{n}', '{word}', {n})" for n, word in enumerate(words))
    statement = f"INSERT INTO users (name, password, age) VALUES {rows};"
    for body in (statement.encode(), json.dumps({"command": statement}).encode()):
        cleaned, found = redact(body)
        assert (found, [word for word in words if word.encode() in cleaned]) == (3, [])
        assert all(f"user{n}".encode() in cleaned for n in range(3))


def test_names_of_your_own():
    own = Redactor(names=["badge_number"])
    assert own.redact(b'{"badge_number": "12-AB"}') == (b'{"badge_number": "[redacted:named]"}', 1)
    assert redact(b'{"badge_number": "12-AB"}')[1] == 0


def test_patterns_of_your_own_leave_json_valid():
    own = Redactor(patterns=[r"\d{16}", r"ab.*", "(", r"[\s\S]{30,}"])
    for value in (4111111111111111, "x 4111111111111111 y", 'ab"cd\\', {"ab": [1, "ab"]}, "z" * 50):
        json.loads(own.redact(json.dumps({"v": value, "w": 1}).encode())[0])
    assert b"4111" not in own.redact(b'{"v": 4111111111111111}')[0]
    assert own.redact(b"card 4111111111111111.")[0] == b"card [redacted:pattern]."


@settings(max_examples=300, deadline=None)
@given(VALUES, st.sampled_from([r"[a-z]", r"\d+", r"[\s\S]{3}", r"[^x]*", r"\\.", r'"', "e"]))
def test_no_pattern_breaks_json(value, pattern):
    own = Redactor(patterns=[pattern])
    body = json.dumps({"v": value}).encode()
    gone, _ = own.redact(body)
    json.loads(gone)
    assert shape(gone) == shape(body)
    assert own.redact(gone) == (gone, 0)


def test_what_is_to_be_kept_is_kept():
    body = b'{"password": "hunter2", "passwd": "hunter3"}'
    assert Redactor(keep=["hunter2"]).redact(body)[0] == b'{"password": "hunter2", "passwd": "[redacted:password]"}'


@settings(max_examples=400, deadline=None)
@given(VALUES, st.booleans(), st.sampled_from([None, (",", ":"), (" , ", "\n:\t")]))
def test_json_stays_json_of_the_same_shape(value, ascii_only, separators):
    body = json.dumps(value, ensure_ascii=ascii_only, separators=separators).encode("utf-8", "replace")
    gone, count = redact(body)
    json.loads(gone)
    assert shape(gone) == shape(body)
    assert (gone == body) == (count == 0)
    assert redact(gone) == (gone, 0)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.binary(), TEXTS.map(lambda text: text.encode("utf-8", "replace"))))
def test_any_bytes_never_raise_and_twice_is_once(body):
    own = Redactor(names=["token", "x"], patterns=["a+", r"\\", r"[\s\S]"], keep=["a"])
    gone, _ = own.redact(body)
    assert own.redact(gone) == (gone, 0)
    gone, _ = redact(body)
    assert redact(gone) == (gone, 0)


HOSTILE = [
    "a", "=", '"', "\\", "'", " ", "-", "_", "\n", "password", "password=", 'password="', "password : ", "token=token=",
    "key: ", "api_key=\\", "://", "://a:", "a@", "-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "sk-", "ghp_a", "eyJ",
    "eyJaaaaaaaaaaaa.", "authorization: ", "Authorization: Bearer a", "secret_key_base_", "password\\\\\\\"", "SG.aaaa",
    'password":"', "password value=", "AKIA", "pwd\\n\\n",
    "passphrase=", "cookie: a=", "cookie: a=b; ", "curl -u a:b ", "curl", " -u a:b", '"auth":"', "auth=a", "Cookie: a=;",
    "password: a" + "b" * 50 + "=",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_is_read_to_its_end(piece):
    body = (piece * (256_000 // len(piece) + 1)).encode()[:256_000]
    gone, _ = redact(body)
    assert len(gone) <= len(body) * 4


def test_no_pattern_needs_a_python_that_has_its_possessive_groups_right() -> None:
    """Before 3.11.5 `(?:a|ab)*+` may find nothing where there is something: a secret would go to disk."""
    patterns = [rule.pattern.encode() for rule in (*RULES.tokens, *RULES.places)]
    patterns += [pattern.encode() for pattern in RULES.patterns.values()]
    patterns += [value.pattern for value in vars(decoded_forms).values() if isinstance(value, re.Pattern)]
    assert len(patterns) > 1000
    for pattern in patterns:
        assert not re.search(rb"(?<!\\)(?:\)|\])(?:[?*]|\{[0-9,]+\})\+|[)\]]\+\+|\(\?>", pattern), pattern


@pytest.mark.parametrize("between", [" ", "\n", "\\n", "\r\n"])
def test_an_encrypted_key_that_was_cut_and_joined_to_one_line_goes(between):
    body = [make_example("<b64>", f"{n}") for n in range(5)]
    lines = [
        "-----BEGIN DSA PRIVATE KEY-----",
        "Proc-Type: 4,ENCRYPTED",
        "DEK-Info: AES-128-CBC,FDBF2E247470A7AB",
        *body,
    ]
    text, _ = Redactor().redact_text("k = <<-EOT" + between + between.join(lines))
    assert not any(line in text for line in body)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("postgres://app:kSJx@UP3dRX6/GHp@db.internal:5432/prod", "postgres://app:[redacted:url-password]@db.internal:5432/prod"),
        ("https://ada:Zx81kQpL@x.dev/?to=b@y.dev", "https://ada:[redacted:url-password]@x.dev/?to=b@y.dev"),
        ("postgres://app:Zx81kQpL@db/app?mail=a@b.dev", "postgres://app:[redacted:url-password]@db/app?mail=a@b.dev"),
    ],
)  # fmt: skip
def test_a_password_with_signs_of_addresses_goes_whole_and_the_host_stays(text, kept):
    assert Redactor().redact_text(text)[0] == kept
