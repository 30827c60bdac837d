"""Further constructs that hold a secret: calls that sign or encrypt, network devices, tools of vendors, what is said."""

from holdfast.redact.judge import PlaceRule
from holdfast.redact.rules.arguments import ARGUMENT_RULES
from holdfast.redact.rules.frames import FRAME_RULES
from holdfast.redact.rules.records import RECORD_RULES
from holdfast.redact.rules.values import BARE_OR_QUOTED as _QV
from holdfast.redact.rules.values import REST_OF_COMMAND as _CMD
from holdfast.redact.rules.values import one_of as _one_of

# `positive` and `negative` of each rule are its own test: what it must find, and what it must leave.
_QUOTED = r"\\{0,3}[\"'`](?P<secret>[^\"'`\\\r\n\s]{3,400})\\{0,3}[\"'`]"
_SAID = r"\\{0,3}[\"'`«»“„]{0,1}(?P<secret>[^\s\"'`\\,;«»“”]{6,200})"
"""A value within a sentence."""


# Anchors are whole phrases: each place of a common word would cost a look in every text.
_PRINTED = (
    "assword=%s",
    "ASSWORD=%s",
    "oken=%s",
    "OKEN=%s",
    "ecret=%s",
    "ECRET=%s",
    "_key=%s",
    "_KEY=%s",
    "_pwd=%s",
    "_PWD=%s",
)
_AUTH_COMMANDS = (
    *(
        "snyk auth ",
        "cloudflared service install ",
        "ngrok authtoken ",
        "add-authtoken ",
        "auth:token ",
        "nuget setapikey ",
    ),
    *("nuget setApiKey ", "pypi-token.pypi ", "pypi-token.testpypi "),
)
_DEVICE_KEYS = (
    *(
        "snmp-server community ",
        "tacacs-server key ",
        "radius-server key ",
        "isakmp key ",
        "authentication-key ",
    ),
    *(
        "message-digest-key ",
        "ppp chap password ",
        'ascii-text "',
        "standby authentication ",
    ),
)
_THEN_ENTER = tuple(
    f", {lead}{verb} "
    for lead, verbs in (
        ("so ", "enter use type try"),
        ("then ", "enter type"),
        ("please ", "enter use type"),
        ("dann ", "nimm"),
    )
    for verb in verbs.split()
)
_NAMELY = tuple(
    f"{name}, {word} "
    for name in ("assword", "assphrase", "oken", "ecret", "API key", "api key")
    for word in ("i.e.", "namely", "which is")
)
_AS_PASSWORD = (
    *(
        "ls Passwort ",
        "ls Kennwort ",
        "ls wachtwoord ",
        "omme mot de passe ",
        "omo contraseña ",
        "omo senha ",
        "ome password ",
    ),
    *(" as password ", " as the password ", "ako hasło "),
)
_CHANGED = (
    *(
        "asswort auf ",
        "ennwort auf ",
        "mot de passe en ",
        "mot de passe à ",
        "mot de passe par ",
        "contraseña a ",
        "contraseña por ",
    ),
    *("senha para ", "a password in ", "asło na ", "ароль на ", "wachtwoord veranderd in ", "wachtwoord gewijzigd in "),
)
_CHANGE = (
    r"(?i:chang\S{1,4}|modifi\S{1,4}|remplac\S{1,2}|cambi\S{1,5}|actuali\S{1,4}|mud\S{1,3}|alter\S{1,3}|troqu\S{1,2}|impostat\w|modificat\w"
    r"|zmieni\S{1,4}|ustawi\S{1,4}|сменил\S{0,4}|изменил\S{0,4}|поменял\S{0,4}|habe|hab|haben|heb|hebben)"
)
"""That something was changed, in nine languages."""
_LOGIN_VERBS = (
    *(
        "elde dich mit ",
        "elden Sie sich mit ",
        "onnecte-toi avec ",
        "onnectez-vous avec ",
        "ccedi con ",
        "ntra con ",
        "nicia sesión con ",
    ),
    *(
        "aça login com ",
        "ntre com ",
        "og in met ",
        "nloggen met ",
        "aloguj się jako ",
        "ойди с ",
        "sh into it with ",
        "sh in with ",
    ),
    *("et in with ", "in there with "),
)
"""Without their first letter, which may be a capital."""
_LOGIN_PLACES = (
    "Zugang: ",
    "Wifi: ",
    "WiFi: ",
    "WLAN: ",
    "Accès : ",
    "Acceso: ",
    "Accesso: ",
    "Acesso: ",
    "ログインは ",
    "ログイン: ",
    "账号: ",
    "账号：",
)
_WORD = r"(?i:passw\w{2,6}|passphrase|passcode|\bpin\b|token|secret|api[ -]?key)"

CALL_RULES = (
    PlaceRule("signing-key", ("jwt.sign(", "jwt.encode(", "jwt.verify(", "jwt.decode(", "jsonwebtoken.sign(", "JWT.encode", "JWT.decode", "Jwt::encode("), r"\w{3,12}(?:\.|::)\w{4,6}[( ](?:\{[^{}\r\n]{0,200}\}|[^,\"'{}\r\n]{1,80}),\s{0,4}b?" + _QUOTED, "token", "jwt.sign(payload, '{}')", "jwt.sign(payload, 'app-secret-name')"),
    PlaceRule("signing-key", ("createHmac(", "hash_hmac(", "HMAC.hexdigest(", "HMAC.digest(", "createCipheriv(", "createDecipheriv(", "openssl_encrypt(", "openssl_decrypt("), r"[\w.]{8,20}\([^\r\n()]{1,80}?,\s{0,4}b?" + _QUOTED, "token", "crypto.createHmac('sha256', '{}')", "crypto.createHmac('sha256', 'app-secret-name')"),
    PlaceRule("signing-key", ("hmac.new(", "hmac.digest(", "HmacSHA256(", "HMACSHA256(", "Fernet(", "URLSafeTimedSerializer(", "URLSafeSerializer(", "TimestampSigner(", "SecretBox(", "ChaCha20Poly1305(", "AESGCM("), r"[\w.]{6,24}\(\s{0,4}(?:key\s?=\s?)?b?" + _QUOTED, "token", "Fernet(b\"{}\")", "Fernet(b\"app-secret-name\")"),
    PlaceRule("encryption-key", ("AES.new(", "DES3.new(", "bytes.fromhex(", "Buffer.from('", "Buffer.from(\"", "hex.DecodeString(", "unhexlify("), r"(?i:aes|des3?|key|cipher|secret|hmac|sign)[\w.]{0,24}[( =]{1,4}[\w.\[\](]{0,24}(?:fromhex|from|DecodeString|unhexlify|new)\(\s{0,3}b?\\{0,3}[\"'](?P<secret>[0-9A-Fa-f]{32,128}|[A-Za-z0-9+/]{43}=)\\{0,3}[\"']", "any", "key = bytes.fromhex(\"<h32>,<h32>\")".replace(",", ""), "digest = bytes.fromhex(\"$VALUE\")", back=40),
    PlaceRule("signing-key", ("[]byte(\"", "[]byte(`", "[]byte(\\\""), r"(?i:secret|key|token|passw\w{2,4})\w{0,12}\s{0,4}(?::=|=|:|,)\s{0,4}\[\]byte\(" + _QUOTED, "mixed", "var jwtKey = []byte(\"{}\")", "var keyName = []byte(\"name\")", back=40),
    PlaceRule("printed-password", _PRINTED, _one_of(_PRINTED) + r"(?:\\+[nr]|\r?\n)?\\{0,3}[\"']\s{1,3}" + _QV, "mixed", "printf 'admin_password=%s\\n' '{}'", "printf 'admin_password=%s\\n' \"$PW\""),
    PlaceRule("weather-key", ("appid=", "APPID="), r"(?<=[?&])(?i:appid)=(?P<secret>[0-9a-f]{32})(?![0-9a-f])", "certain", "https://api.example.org/data?appid=<h32>&q=x,<h32>".split("&")[0] + "", "https://api.example.org/data?appid=4711"),
)  # fmt: skip

TOOL_RULES = (
    PlaceRule("command-token", _AUTH_COMMANDS, _one_of(_AUTH_COMMANDS) + r"\s{0,3}(?P<secret>[A-Za-z0-9._~+/=-]{20,1000})(?![\w.@/])", "token", "snyk auth {}", "snyk auth --auth-type=oauth"),
    PlaceRule("command-token", ("activate-refresh-token ",), r"activate-refresh-token\s{1,3}\S{1,80}\s{1,3}(?P<secret>[A-Za-z0-9._~+/=-]{20,1000})", "token", "gcloud auth activate-refresh-token ada {}", "gcloud auth activate-refresh-token ada $TOKEN"),
    PlaceRule("command-token", ("doctl auth init", "linode-cli configure", "hcloud context create", "flyctl auth", "nuget push", "nuget.exe push"), r"[\w. -]{5,24}\s" + _CMD + r"(?<=\s)(?:-t|-k|-ApiKey|--auth|--access-token)[ =]" + _QV, "token", "doctl auth init -t {}", "doctl auth init -t $TOKEN"),
    PlaceRule("command-password", ("supabase link", "supabase db", "signtool ", "kubectl config", "az vm create", "az sql", "neonctl "), r"[\w -]{4,16}(?<=[\s\w])" + _CMD + r"(?<=\s)(?:-p|/p|--admin-password|--password|--passwd|-w)[ =]" + _QV, "mixed", "supabase link --project-ref x -p {}", "supabase link -p 5432"),
    PlaceRule("one-time-code", ("--otp ", "--otp=", "--totp ", "--mfa-code ", "--token-code "), r"--[\w-]{3,12}[ =]\\{0,3}[\"']?(?P<secret>\d{6,8})(?!\d)", "certain", "npm publish --otp=<d6>,<d6>".split(",")[0], "npm publish --otp=$OTP"),
    PlaceRule("bind-password", ("bindpw ", "bindPassword ", "binddn_password "), r"\w{6,16}\s{1,8}" + _QV, "mixed", "bindpw {}", "bindpw secret"),
    PlaceRule("set-secret", ("secrets set ", "secret set ", "secrets:set ", "config:set ", "env set ", "kv put ", "secrets upload "), r"[\w:]{3,8}\s?\w{3,6}\s(?:--?[\w-]{1,20}[ =]\S{1,60}\s){0,3}(?:[\w./-]{1,80}\s)?[\w.-]{1,60}=" + _QV, "strong", "doppler secrets set STRIPE=\"{}\"", "fly secrets set LOG_LEVEL=debug"),
    PlaceRule("unseal-key", ("operator unseal ", "operator rekey "), r"operator \w{5,6}\s(?:-\S{1,40}\s){0,4}(?P<secret>[A-Za-z0-9+/=]{32,120})(?![\w/])", "token", "vault operator unseal {}", "vault operator unseal -reset"),
    PlaceRule("pre-shared-key", (" -psk ", "-sec.psk ", " psk '", ' psk "', ' psk \\"'), r"[\w .-]{4,9}\s{1,3}(?:\\{0,3}[\"']){0,2}(?P<secret>[^\s\"'\\]{8,128})", "mixed", "openssl s_client -psk {}", "openssl s_client -psk $PSK"),
    PlaceRule("windows-password", (" /rp ", " /RP "), r"\s/(?i:rp)\s{1,3}" + _QV, "mixed", "schtasks /create /ru ada /rp {} /tn x", "schtasks /create /ru ada /rp * /tn x"),
    PlaceRule("app-password", ("altool ", "notarytool "), r"\w{6,10}\s" + _CMD + r"(?<=\s)(?:-p|--password)[ =]\\{0,3}[\"']?(?P<secret>[a-z]{4}(?:-[a-z]{4}){3})(?![a-z-])", "certain", "xcrun altool -u ada -p <a4>-<a4>-<a4>-,<a4>".replace(",", ""), "xcrun altool -u ada -p @keychain:x"),
    PlaceRule("piped-password", ("<(echo ", "<(printf "), r"(?i:passw|secret|token|key|pass)[\w-]{0,12}[ =]<\((?:echo|printf)\s(?:-\w+\s)?" + _QV, "mixed", "rsync --password-file=<(echo {}) a b", "rsync --password-file=<(echo $PW) a b", back=32),
    PlaceRule("plain-scheme", ("{PLAIN}", "{CLEAR}", "{CLEARTEXT}"), r"\{\w{5,9}\}(?P<secret>[^\s:\"'\\]{4,100})", "mixed", "ada:{PLAIN}{}", "ada:{PLAIN}"),
    PlaceRule("mail-login", ("static:",), r"(?<![\w-])static:[\w.@+-]{1,80}:(?P<secret>[^\s\"'\\/]{5,100})", "mixed", "smtp_sasl_password_maps = static:ada:{}", "static:ada:$PW"),
    PlaceRule("leader-password", (" ....", "\t...."), r"(?i:passw\w{0,4}|token|secret|api[ _-]?key|access key)[ \t]{1,4}\.{4,80}:?[ \t]{0,4}" + _QV, "mixed", "password ........ {}", "password ........ set", back=16),
    PlaceRule("copilot-token", ("tid=",), r"(?<![\w])tid=[0-9a-f]{32};exp=(?P<secret>\d{10};[^\s\"'\\]{40,2000})", "certain", "tid=<h32>;exp=1763424000;sku=free;8kp=1:,<h64>".replace(",", ""), "tid=4711"),
    PlaceRule("extra-variable", ("-e ansible_", "-e \"ansible_", "-e 'ansible_", "--extra-vars "), r"(?:-e|--extra-vars)\s\\{0,3}[\"']?[\w. =/-]{0,80}?(?i:pass(?:word|wd)?|secret|token|api_?key)=(?P<secret>[^\s\"'\\]{6,200})", "password", "ansible-playbook x.yml -e \"ansible_password={}\"", "ansible-playbook x.yml -e \"ansible_password=$PW\""),
    PlaceRule("device-password", _DEVICE_KEYS, _one_of(_DEVICE_KEYS) + r"(?:\d{1,3}\s)?(?:md5\s)?(?:\d\s)?\\{0,3}\"?(?P<secret>[^\s\"'\\]{6,120})", "mixed", "snmp-server community {} RO", "snmp-server community public RO"),
    PlaceRule("chap-secret", (" * \"", "\t*\t\"", " * \\\""), r"(?:^|(?<=[\s\x1f]))\\{0,3}\"?[\w.@\\-]{1,60}\\{0,3}\"?[ \t]{1,8}\*[ \t]{1,8}\\{0,3}\"(?P<secret>[^\"\s\\]{4,100})\\{0,3}\"", "mixed", "ada * \"{}\" *", "ada * \"next\" *", back=70),
    PlaceRule("mail-login", (" LOGIN ",), r"(?<=\s)LOGIN\s\\{0,3}\"?[\w.@+-]{2,80}\\{0,3}\"?\s\\{0,3}\"?(?P<secret>[^\s\"\\]{6,100})".replace(r"(?<=\s)LOGIN", r"\sLOGIN"), "mixed", "a1 LOGIN ada@x.dev \"{}\"", "USER LOGIN page here"),
    PlaceRule("chat-password", ("ickServ ", "ICKSERV ", "ickserv "), r"(?i:ickserv)\s{1,2}:?(?i:identify|register|ghost|recover)\s(?:[\w\[\]|^-]{1,30}\s)?(?P<secret>[^\s\"']{5,60})", "mixed", "/msg NickServ identify ada {}", "/msg NickServ help identify"),
    PlaceRule("server-password", ("PASS ",), r"(?<![^\n\x1f])PASS\s(?P<secret>[^\s\"'\\/]{16,120})(?=[\r\n\x1f]|$)", "strong", "PASS {}\r\nNICK ada", "PASS src/components/login2.test.ts"),
)  # fmt: skip

SAID_RULES = (
    PlaceRule("said-reset", ("set it to ", "changed it to ", "hanged it to "), r"(?i:set|changed|hanged) it to\s" + _SAID + r"[^\r\n]{0,60}?(?i:passw|passphrase|\bpin\b|\bpw\b)", "mixed", "I reset it to {}, the password works now", "I set it to 250ms, the login works now"),
    PlaceRule("said-behind", (" is the pass", " is my pass", " is our pass", "'s the pass", "’s the pass", " is the root pass", "'s the old pass", " is the old pass", " was the old pass", " is the admin pass", " is the new pass", " is the secret", " is the token", " is the API key", " is the api key", " ist das Pass", " est le mot de passe", " es la contras"), r"(?<![^\s\"'`(:])(?P<secret>[^\s\"'`\\,;()]{8,100})\\{0,3}[\"'`]?(?:,|\s(?:—|–|--?))?(?:\sthat|\sthis|\sit|\sdas|\sc)?(?:\sis|\swas|'s|’s|\sist|'est|\sest|\ses)\s(?:the|my|our|your|das|le|la)\s", "cased", "so {} is the password", "what is the password", back=130),
    PlaceRule("said-login", _LOGIN_VERBS, _one_of(_LOGIN_VERBS) + r"\S{0,12}?\s?[\w.@+-]{2,60}(?:\s(?:and|und|et|e|y|en|z|i|и)\s|\s{0,2}[/,:]\s{0,2})(?:(?:hasłem|паролем|senha|password|Passwort|wachtwoord)\s)?" + _SAID, "mixed", "connecte-toi avec admin et {}", "connecte-toi avec admin et attends"),
    PlaceRule("said-pair", _LOGIN_PLACES, _one_of(_LOGIN_PLACES) + r"[\w.@+-]{2,60}\s{0,2}/\s{0,2}" + _SAID, "mixed", "Zugang: admin / {}", "Zugang: vorne / hinten"),
    PlaceRule("said-login", (" to get in", " to get access"), r"(?i:use|with|try|enter|using)\s[\w.@+-]{2,40}/(?P<secret>[^\s\"'`\\]{8,80})\sto get\s", "mixed", "you can use admin/{} to get in", "use the side/door2 to get in", back=110),
    PlaceRule("said-namely", _NAMELY, _one_of(_NAMELY) + _SAID, "mixed", "the db password, i.e. {}", "the password, i.e. the rules"),
    PlaceRule("said-enter", _THEN_ENTER, _WORD + r"[^\r\n.:]{0,40}" + _one_of(_THEN_ENTER) + _SAID, "mixed", "it wants a password, so enter {}", "it needs a token, so use the one you have", back=60),
    PlaceRule("said-as", _AS_PASSWORD, _one_of(_AS_PASSWORD) + r"(?:bitte\s|dann\s|einfach\s|use\s|graag\s)?" + _SAID, "mixed", "nimm als Passwort bitte {}", "als Passwort bitte etwas Langes"),
    PlaceRule("said-changed", _CHANGED, _CHANGE + r"\s(?:\S{1,20}\s){0,3}?\S{0,14}?" + _one_of(_CHANGED) + _SAID, "mixed", "Cambié la contraseña a {}", "Cambié la contraseña a mano", back=70),
)  # fmt: skip
CONSTRUCT_RULES = (*CALL_RULES, *TOOL_RULES, *SAID_RULES, *FRAME_RULES, *ARGUMENT_RULES, *RECORD_RULES)
