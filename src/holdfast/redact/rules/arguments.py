"""Calls of programs that take a secret as an argument: those that log in, encrypt, sign or hash a password."""

from holdfast.redact.judge import PlaceRule
from holdfast.redact.rules.values import NAME_OF_PROGRAM
from holdfast.redact.rules.values import one_of as _one_of

_STRING = r"(?:b|u|r)?(?P<q>\\{0,3}[\"'`])(?!" + NAME_OF_PROGRAM + r"[\"'`\\])(?P<secret>[^\"'`\\\r\n\s]{8,200})(?P=q)"
"""A string that is no name of the program, as `onClick2Times` is."""
_OTHER = r"(?:\\{0,3}[\"'`][^\"'`\\\r\n]{0,120}\\{0,3}[\"'`]|[\w.$>:-]{1,40})\s{0,2},\s{0,4}"
"""An argument before it."""
_ALGORITHM = r"(?:\\{0,3}[\"'`](?i:aes|sha|hmac|md5|des|chacha|hs|rs|es|pbkdf2)[\w./-]{0,24}\\{0,3}[\"'`]|[\w.]{1,30}(?:\(\))?)\s{0,2},\s{0,4}"
_BYTES_OF = r"(?:\[\]byte\(|Buffer\.from\(|bytes\(|Encoding\.\w{3,7}\.GetBytes\(|CryptoJS\.enc\.\w{3,8}\.parse\(|new TextEncoder\(\)\.encode\(|String\.to_charlist\()?\s{0,2}"

_QUOTES = ('"', "'", '\\"', 'b"', "b'")
_LOGIN_CALLS = (
    *(f"onnect({quote}" for quote in _QUOTES),
    *("_bind(", "bind_s(", ".bind(\"", ".bind('", "createCredential(", "create_superuser(", "create_user(", "createUser(", "CreateUser("),
    *("WiFi.begin(", "NewClient(\"", "LoginAsync(", "set_credentials(", "usernamePassword(", "UsernamePassword(", "_login(", "wp_signon("),
    *("PasswordAuth(", "ssh2_auth_password("),
)  # fmt: skip
_PAIR_CALLS = (
    "add_password(",
    "username_pw_set(",
    ">credentials(",
    ".credentials(",
    "fromDriverManager",
    "Minio(",
    "setEncryption(",
    "Connection(server",
    "set_basic_auth(",
)
_KEYED_CALLS = (
    *("createHmac(", "createCipheriv(", "createDecipheriv(", "hmac.New(", "hmac.new(", "Hmac(", "HMAC(", "hash_hmac(", "pbkdf2_hmac("),
    *("pbkdf2Sync(", "pbkdf2.Key(", "scryptSync(", "scrypt.Key(", "openssl_encrypt(", "openssl_decrypt(", "NewCipher(", "AES.new("),
)  # fmt: skip
_FIRST_CALLS = tuple(
    f"{call}({begin}"
    for call in (
        *("hashpw", "SecretKeySpec", "cookieParser", "cookieSession", "Fernet", "password_hash", "bcrypt.hash", "bcrypt.hashSync"),
        *("argon2.hash", "generate_password_hash", "make_password", "set_password", "setPassword", "crypt", "SecretBox", "Hashids"),
        *("MessageEncryptor.new", "MessageVerifier.new", "Signer", "URLSafeSerializer", "NewCookieStore"),
    )
    for begin in (*_QUOTES, "[]byte(", "Buffer.from(")
)  # fmt: skip
ARGUMENT_RULES = (
    PlaceRule("login-argument", _LOGIN_CALLS, r"[\w.]{2,24}\(\s{0,4}(?:" + _OTHER + r"){1,4}?" + _STRING + r"\s{0,4}[,).]", "cased", "ssh.connect(\"h\", 22, \"ada\", \"{}\")", "signal.connect(\"clicked\", \"onClick2Times\")"),
    PlaceRule("login-argument", _PAIR_CALLS, r"[\w.>]{4,24}(?:\[\w{1,8}\])?\(\s{0,4}(?:" + _OTHER + r"){0,4}?" + _STRING + r"\s{0,4}[,).]", "mixed", "client.username_pw_set(\"dev\", \"{}\")", "client.username_pw_set(\"dev\", password)"),
    PlaceRule("key-argument", _KEYED_CALLS, _one_of(_KEYED_CALLS) + r"\s{0,4}(?:" + _ALGORITHM + r"){0,3}" + _BYTES_OF + _STRING, "cased", "crypto.createHmac('sha256', '{}')", "crypto.createHmac('sha256', key)"),
    PlaceRule("key-argument", _FIRST_CALLS, r"[\w.]{5,24}\(\s{0,4}" + _BYTES_OF + _STRING, "mixed", "bcrypt.hashpw(b\"{}\", salt)", "bcrypt.hashpw(password, salt)"),
    PlaceRule("character-password", (".toCharArray(",), r"(?P<q>\\{0,3}\")(?P<secret>[^\"\\\r\n\s]{5,100})(?P=q)\.toCharArray\(", "mixed", "ks.load(in, \"{}\".toCharArray())", "\"abcdef\".toCharArray()", back=110),
    PlaceRule("bearer", ("Bearer ' ", "Bearer \" ", "Bearer '+", "Bearer \"+", "Bearer '.", "Bearer \"."), r"Bearer \\{0,3}[\"'`]\s{0,3}[+.]\s{0,3}" + _STRING, "token", "Authorization: 'Bearer ' + '{}'", "Authorization: 'Bearer ' + 'token'"),
)  # fmt: skip
"""Their values are judged strictly: most arguments of a call are none."""
