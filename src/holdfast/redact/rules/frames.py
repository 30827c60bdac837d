"""General frames of commands, calls, statements and sentences: the frame says that a secret stands in it, not the program's name.

Their values are judged more strictly than those of `locations`, because a frame says less than the name of a program."""

from itertools import product

from holdfast.redact.judge import PlaceRule
from holdfast.redact.rules.values import BARE_OR_QUOTED as _QV
from holdfast.redact.rules.values import NAME_OF_PROGRAM
from holdfast.redact.rules.values import one_of as _one_of

_SAID = r"\\{0,3}(?:[\"'`]|«|»|“|„|「)?(?P<secret>[!-~]{6,200}?)"
_SAID_END = r"(?=\\{0,3}(?:[\"'`]|»|“|”|」)?[.,;:!?)]{0,2}(?:[\s\x1f]|$|[^\x00-\x7f]))"
"""A value within a sentence, without the sign that ends it; letters of another script end it too."""
_NO_NAME = r"(?!" + NAME_OF_PROGRAM + r"[.,;:!?)\]]{0,2}(?:[^!-~]|$))"
"""Not `TokenV2Handler`, a name of a program."""
_STRING = r"(?P<q>\\{0,3}[\"'`])(?P<secret>[^\"'`\\\r\n\s]{6,200})(?P=q)"

_USER_OPTIONS = (" -u ", " -U ", " -l ", " --user ", " --username ", " -user ", " --login ", " -username ", " -xu ")
_SECRET_STORES = (
    *("secrets set ", "secret set ", "secrets:set ", "secret:set ", "config set --secret ", "secrets put "),
    *("secret put ", "secrets add ", "secret add ", "env set ", "env:set ", "config:set ", "variables set "),
    *("secrets create ", "secret create ", "secrets import ", "vars set "),
)
_PASSWORD_PROGRAMS = (
    "_passwd ",
    " -passwd ",
    "htpasswd ",
    "smbpasswd ",
    "kpasswd ",
    "adduser ",
    "user add ",
    "users add ",
)
_STDIN = ("--with-token", "--password-stdin", "--stdin", "-stdin", "sudo -S", "passphrase-fd")
_LISTED = tuple(
    f"{name}{sign}[{quote}" for name, sign, quote in product(
        ("oken", "okens", "ecret", "ecrets", "OKENS", "ECRETS", "_key", "_keys", "-key", "-keys", "Key", "Keys", "_KEYS", "asswords"),
        ('": ', '":', "': ", " = ", ": ", "=", '\\": ', '\\":'),
        ('"', "'", '\\"'),
    )
)  # fmt: skip
"""With the quote: `token=[` stands in every text that was read once, before `redacted:`."""
_TWO_STRING_CALLS = (
    *("Credentials(", "PlainAuth(", ".basic(", "basicAuth(", "basic_auth(", "BasicAuth(", "PasswordAuthentication("),
    *(
        "UserCredentials(",
        "setCredentials(",
        "withCredentials(",
        "with_credentials(",
        "Credentials.of(",
        "Authenticator(",
    ),
    *(
        "authWithPassword(",
        "signInWithPassword(",
        "signInWithEmailAndPassword(",
        "signIn(",
        "sign_in(",
        "logIn(",
        "log_in(",
    ),
)
_ENCRYPTION_CALLS = (
    *("pgp_sym_encrypt(", "pgp_sym_decrypt(", "AES_ENCRYPT(", "AES_DECRYPT(", "aes_encrypt(", "aes_decrypt("),
    *(
        "ENCRYPTBYPASSPHRASE(",
        "DECRYPTBYPASSPHRASE(",
        "EncryptByPassPhrase(",
        "DecryptByPassPhrase(",
        "pgp_pub_decrypt(",
    ),
    *("CryptoJS.AES.encrypt(", "CryptoJS.AES.decrypt(", "CryptoJS.HmacSHA256("),
)

COMMAND_FRAMES = (
    PlaceRule("login-option", _USER_OPTIONS, _one_of(_USER_OPTIONS) + r"\s{0,2}[^\s;|&]{1,80}\s(?:[^\r\n;|&]{0,120}?\s)?-{1,2}(?:p|P|pw|pass|w|W|xp|password)[ =]" + _QV, "cased", "tool -h db -u ada -p {} -x", "docker run -u 1000 -p 8080:80/tcp nginx"),
    PlaceRule("login-option", (" -p ", " -P ", " -pw ", " -w "), r"\s-(?:p|P|pw|w)\s" + _QV + r"(?(q)\\{0,3}[\"'])\s(?:[^\r\n;|&]{0,80}?\s)?-{1,2}(?:u|U|l|user|username|login)[ =]", "cased", "tool -p {} -u ada", "docker run -p 8080:80/tcp -u 1000 nginx"),
    PlaceRule("stored-secret", _SECRET_STORES, _one_of(_SECRET_STORES) + r"(?:-{1,2}[\w-]{1,20}(?:[= ][\w./-]{1,40})?\s){0,4}?[\w./:-]{1,60}(?:=|\s{1,2})(?:(?:--value|--body|-b|-v|--plaintext)[ =])?" + _QV, "cased", "fly secrets set DB={}", "fly secrets set DB=$DB_URL"),
    PlaceRule("password-argument", _PASSWORD_PROGRAMS, _one_of(_PASSWORD_PROGRAMS) + r"(?:[^\s;|&]{1,60}\s){0,4}?" + _QV + r"(?=\\{0,3}[\"']?\s{0,3}(?:$|[\r\n;|&\x1f]))", "mixed", "mosquitto_passwd -b f ada {}", "mosquitto_passwd -c /etc/mosquitto/passwd ada"),
    PlaceRule("piped-secret", _STDIN, r"(?:echo|printf)\s(?:-\w+\s)?\\{0,3}[\"']%s(?:\\+n)?\\{0,3}[\"']\s\\{0,3}[\"']?(?P<secret>[^\s\"'\\|]{6,300})\\{0,3}[\"']?\s{0,4}\|[^|\r\n]{0,120}?" + _one_of(_STDIN), "mixed", "printf '%s' '{}' | gh auth login --with-token", "printf '%s' \"$PW\" | gh auth login --with-token", back=500),
    PlaceRule("password-command", ("PassCmd ", "PASSCOMMAND=", "PASSWORD_COMMAND=", "passwordeval ", "PasswordCommand ", "password_command", "pass_cmd"), r"\w{7,18}[ =:]{1,3}\\{0,3}[\"']?\+?(?:echo|printf)\s(?:-n\s)?\\{0,3}[\"']?(?P<secret>[^\s\"'\\]{6,100})", "mixed", "PassCmd \"echo {}\"", "PassCmd \"pass show mail\""),
    PlaceRule("totp-secret", ("oathtool ",), r"oathtool\s(?:-{1,2}[\w=-]{1,20}\s){0,6}\\{0,3}[\"']?(?P<secret>[A-Z2-7]{16,64}|[0-9a-f]{32,64})", "any", "oathtool --totp -b <232>", "oathtool --totp -b $SEED"),
    PlaceRule("gem-key", ("gem push ", "gem yank ", "gem owner "), r"gem\s\w{4,5}\s[^\r\n;|&]{0,80}?(?:--key|-k)[ =](?P<secret>[0-9A-Za-z_]{20,80})", "token", "gem push --key {} x.gem", "gem push --key rubygems x.gem"),
)  # fmt: skip

CALL_FRAMES = (
    PlaceRule("network-credential", _TWO_STRING_CALLS, _one_of(_TWO_STRING_CALLS) + r"\s{0,4}(?:\\{0,3}[\"']{2}\s{0,2},\s{0,2})?(?:[\w.]{1,30}\s{0,2},\s{0,2})?\\{0,3}[\"'`][^\"'`\\\r\n]{1,80}\\{0,3}[\"'`]\s{0,2},\s{0,4}" + _STRING, "mixed", "smtp.PlainAuth(\"\", \"ada\", \"{}\", host)", "client.sign_in(\"ada\", \"next\")"),
    PlaceRule("authentication", (".auth(", ".authenticate(", ".unlock(", ".AUTH("), r"\.\w{4,12}\(\s{0,2}" + _STRING + r"\s{0,2}\)", "cased", "redis.auth(\"{}\")", "redis.auth(\"password\")"),
    PlaceRule("encryption-key", _ENCRYPTION_CALLS, _one_of(_ENCRYPTION_CALLS) + r"[^\r\n()]{1,80}?,\s{0,4}" + _STRING, "mixed", "SELECT pgp_sym_decrypt(d, '{}') FROM t", "SELECT pgp_sym_decrypt(d, 'key') FROM t"),
    PlaceRule("expect-password", ("sendline(", "send_line(", "sendLine(", "writeln("), r"(?i:passw|passphrase|login)[^\r\n]{0,80}?[)\]}'\"; \r\n]{1,20}[\w.]{0,20}(?:sendline|send_line|sendLine|writeln)\(\s{0,2}b?" + _STRING, "mixed", "c.expect('password:'); c.sendline('{}')", "c.expect('password:'); c.sendline('yes')", back=140),
    PlaceRule("encryption-key", ("Key(data: Data(", "Key(data: ", "Key(bytes: "), r"\w{3}\(\w{4,5}:\s(?:\w{4,5}\()?\s{0,2}(?:\w{3,6}:\s)?" + _STRING, "mixed", "SymmetricKey(data: Data(\"{}\".utf8))", "SymmetricKey(data: Data(\"name\".utf8))"),
    PlaceRule("listed-secret", _LISTED, r"(?i:token|secret|api[_-]?key|access[_-]?key|auth[_-]?key|signing[_-]?key|passwords?)s?\\{0,3}[\"']?\s{0,2}[:=]\s{0,2}\[\s{0,8}\\{0,3}[\"'](?P<secret>[^\s\"'\\]{12,200}(?:\\{0,3}[\"'],\s{0,8}\\{0,3}[\"'][^\s\"'\\]{12,200}){0,20})\\{0,3}[\"']", "strong", "api_keys = [\"{}\"]", "api_keys = [\"primary-service-name\"]", back=12),
)  # fmt: skip

_HOSTS = (
    *(f"@{host}" for host in ("localhost", "127.", "10.", "192.168.", "172.")),
    *(f"@{host}{sign}" for host in "sip api git repo nexus registry vpn cvs svn db mysql mariadb postgres pg mongo redis cache rabbitmq mq smtp mail imap ftp sftp proxy host server".split() for sign in ".:/"),
    *(f".{end}:" for end in "internal local lan corp".split()),
)  # fmt: skip
STATEMENT_FRAMES = (
    PlaceRule("login-without-scheme", _HOSTS, r"(?<![^\s\"'`(=,\x1e\x1f])(?:[\w.-]{1,30}[/\\])?\w[\w.-]{0,40}:(?P<secret>[^\s\"'`@:/\\<>]{6,100})@(?=[a-z0-9][\w.-]{1,80}(?:[:/\s\"'`\x1f),]|$))", "mixed", "connect as ada:{}@db.internal:5432/app", "image: repo/app:v1.2.3@db.internal:5432", back=170),
    PlaceRule("db2-password", ("onnect to ", "ONNECT TO ", "ttach to "), r"\w{5,6}\s(?i:to)\s[\w.]{1,40}\s(?i:user)\s[\w.]{1,40}\s(?i:using)\s\\{0,3}[\"']?(?P<secret>[^\s\"'\\;]{4,60})", "mixed", "db2 connect to SALES user ada using {}", "db2 connect to SALES user ada using $PW"),
    PlaceRule("device-token", ("/api/v1/",), r"thingsboard[\w.-]{0,40}(?::\d{2,5})?/api/v1/(?P<secret>[A-Za-z0-9]{16,40})/(?:telemetry|attributes|rpc|claim)", "certain", "http://thingsboard.example/api/v1/<l20>/telemetry", "http://thingsboard.example/api/v1/devices", back=70),
    PlaceRule("api-key", ("login_with_api_key",), r"login_with_api_key[^\r\n\[]{0,40}\[\\{0,3}[\"'](?P<secret>\d{1,6}-[A-Za-z0-9]{40,80})", "certain", "{\"method\":\"auth.login_with_api_key\",\"params\":[\"1-<w64>\"]}", "auth.login_with_api_key"),
    PlaceRule("sql-password", ("IDENTIFIED WITH", "identified with", "Identified With"), r"(?i:identified with)\s[\w\"'`]{3,40}\s(?i:by|as|using)\s(?:(?i:password)\s)?\\{0,3}[\"'](?P<secret>[^\"'\\\r\n]{3,200})", "password", "ALTER USER a IDENTIFIED WITH sha256_password BY '{}'", "ALTER USER a IDENTIFIED WITH sha256_password BY '$PW'"),
    PlaceRule("database-key", ("PRAGMA key", "PRAGMA rekey", "pragma key", "PRAGMA hexkey"), r"(?i:pragma\s\w{3,6})\s{0,2}=\s{0,2}\\{0,3}[\"']{1,2}(?:x')?(?P<secret>[^\"'\\\s]{6,200})", "password", "PRAGMA key='{}'", "PRAGMA key='$KEY'"),
    PlaceRule("database-key", ("ATTACH DATABASE", "attach database", "ATTACH "), r"(?i:attach)\s[^\r\n;]{1,120}?\s(?i:key)\s'(?P<secret>[^'\\\s]{6,200})'", "password", "ATTACH DATABASE 'x.db' AS x KEY '{}'", "ATTACH DATABASE 'x.db' AS x KEY ''"),
    PlaceRule("redis-password", ("SETUSER ", "setuser "), r"(?i:setuser)\s[\w.-]{1,40}\s[^\r\n>]{0,80}?>(?P<secret>[^\s\"'\\]{6,100})", "mixed", "ACL SETUSER ada on >{} ~*", "ACL SETUSER ada on >$PW ~*"),
    PlaceRule("pre-shared-key", ("EAP \"", "XAUTH \"", "NTLM \"", "EAP '", "EAP \\\""), r"(?:EAP|XAUTH|NTLM)\s\\{0,3}[\"'](?P<secret>[^\"'\\\s]{6,100})", "mixed", "ada : EAP \"{}\"", "type = EAP \"required\""),
    PlaceRule("braced-password", ("WORD) {", "word) {", "PASS) {", "OKEN) {", "CRET) {", "word {", "_KEY) {"), r"(?:set|variable)\s[^\r\n{}]{0,60}(?i:passw(?:or)?d|pass|token|secret|key)\)?\s\{(?P<secret>[^\s{}]{6,200})\}", "mixed", "set ::env(DB_PASSWORD) {{}}", "set ::env(DB_PASSWORD) {none}", back=80),
)  # fmt: skip

# Sentences. Anchors have no first letter where that may be a capital.
_AS_A_PASSWORD = tuple(
    f"{sign}{said}"
    for sign in (" ", "\" ", "' ", "` ")
    for said in (
        *("als Passwort", "als Kennwort", "als wachtwoord", "als API-Key", "als Token", "comme mot de passe", "comme clé"),
        *("como contraseña", "como clave", "como senha", "come password", "come chiave", "jako hasła", "jako hasło"),
        *("как пароль", "в качестве пароля", "som lösenord", "som passord", "som adgangskode", "som kodeord"),
        *("jako heslo", "ca parolă", "jelszóként", "olarak", "en tant que mot de passe", "come token", "como token"),
    )
)  # fmt: skip
_AS_A_PASSWORD_CJK = (
    "作为密码",
    "做密码",
    "当密码",
    "作为口令",
    "作為密碼",
    "をパスワード",
    "をPWに",
    "를 비밀번호",
    "을 비밀번호",
    "로 로그인",
    "でログイン",
    "登录",
    "登入",
)
_QUALIFIERS = "root admin sudo db database wifi Wi-Fi VPN vpn ssh SSH staging prod production master login new old current correct right actual real wrong shared temporary".split()
_BEHIND = (
    *(f"{verb} {whose} {word} pass" for verb in (" is", "'s", " was") for whose in ("the", "my", "our") for word in _QUALIFIERS),
    *(f" {verb} {word}" for verb in ("ist mein", "ist unser", "ist das neue", "war das") for word in ("Passwort", "Kennwort")),
    *(" est notre mot de passe", " est mon mot de passe", " es mi contraseña", " es nuestra contraseña", " é a senha"),
    *(" è la password", " is het wachtwoord", " to hasło", " — это пароль", " - это пароль", " är lösenordet", " er passordet"),
)  # fmt: skip
_LOGIN_LEADS = (
    *("Log in as ", "Login as ", "Sign in as ", "Log in with ", "Sign in with ", "Logged in as ", "Log in using "),
    *("Sign in using ", "Login with ", "Login using ", "og on as ", "og on with ", "uthenticate as ", "onnect as "),
)
_LOGIN_ENDS = (" anmelden", " einloggen", " inloggen", " anmelden.", " aanmelden")
_TYPE_IT = (", type ", ", enter ", ", paste ", ", type in ")
_NAME_TYPE_IT = tuple(
    f"{name}, {verb} " for name in ("assword", "assphrase", "oken", "ogin", "ecret", "PIN") for verb in ("use", "try", "put")
)  # fmt: skip
_WHEN_ASKED = (
    *(
        f" {lead} {said}"
        for lead in ("when", "if", "once")
        for said in ("prompted", "asked", "it asks", "it prompts", "it wants", "the prompt")
    ),
    *(" at the prompt", " into the prompt"),
)
_WITH = (
    *(f"{name} with " for name in ("oken", "ecret", "assphrase")),
    *(f" {whose} password with " for whose in ("the", "old", "current", "root", "admin")),
)
_HANDED_OVER = tuple(
    f"{said}{sign} "
    for said in ("need this", "ere it is", "ere you go", "this one", "use this", "try this", "with this", "got it", "is this one")
    for sign in (":", " ->", " -")
)  # fmt: skip
_SAYS_NAME = (
    r"(?i:passw|passphrase|passcode|\bpin\b|token|secret|\bkey\b|\bpass\b|\bpw\b|login|log[gs]?(?:ing)? in|credential)"
)
_GIVEN = tuple(
    f" {said}, "
    for said in (
        "gave us",
        "gave me",
        "sent us",
        "sent me",
        "for now",
        "i set",
        "I set",
        "we set",
        "we use",
        "i use",
        "I use",
    )
)
_THEN = (
    *(f"{end} {said} " for end in (".", "!", "?") for said in ("It is", "It's", "it's", "It's now", "That is", "That's", "that's", "it is")),
    *('" It is ', '" It\'s ', '— "It\'s ', "it's now ", "it is now "),
    *(f", {whose} {is_} " for whose in ("ours", "mine", "yours") for is_ in ("is", "was")),
    *(f", {said} " for said in ("agora é", "теперь", "es heißt jetzt", "jetzt", "ora è", "maintenant", "ahora es", "teraz", "c'est maintenant")),
    *("always been ", "New value: ", "new value is ", "new value ", "new value: ", "old value was ", "the value is ", "correct value is "),
)  # fmt: skip
_UNLOCKS = (
    *(
        "ogging in with ",
        "ogs in with ",
        "ogged in with ",
        "nlock it with ",
        "ecrypt it with ",
        "pen it with ",
        "nlocks with ",
        "ount it with ",
    ),
    *(
        f" {thing} with "
        for thing in "volume disk archive keystore vault container partition zip safe wallet database".split()
    ),
)
_CHOSEN = ("went with ", "going with ", "go with ", "settled on ", "decided on ", "picked ", "chose ")
_PAIR_WORDS = (
    *("nloggegevens", "ane logowania", "четные данные", "чётные данные", "nloggningsuppgifter", "nnloggingsinfo"),
    *(
        "ログイン情報",
        "登录信息",
        "账号密码",
        "帐号密码",
        "로그인 정보",
        "irjautumistiedot",
        "řihlašovací údaje",
        "iriş bilgileri",
    ),
    *("ser/pass", "sername/password", "ser / pass", "ser/pw", "ccesos", "ogin info", "ogin details"),
)
_TILL = (
    *("lösenord till ", "lösenordet till ", "passord til ", "passordet til ", "adgangskode til ", "adgangskoden til "),
    *("kodeord til ", "salasanaksi ", "heslo na ", "asswort zu ", "asswort in ", "wachtwoord naar ", "parola in "),
    *(
        "palavra-passe para ",
        "parola olarak ",
        "şifre olarak ",
        "şifreyi ",
        "clave a ",
        "clave por ",
        "mdp en ",
        "mdp par ",
        "пароль в ",
    ),
)

SENTENCE_FRAMES = (
    PlaceRule("said-as", _AS_A_PASSWORD, r"(?:(?<=[\s\x1f\"'`\x80-\xff])|^)(?P<secret>[!-~]{6,100}?)\\{0,3}(?:[\"'`]|»|”|“)?\s(?:als|comme|como|come|jako|как|в качестве|som|ca|jelszóként|olarak|en tant que)", "spoken", "nimm {} als Passwort", "nimm etwas als Passwort", back=110),
    PlaceRule("said-as", _AS_A_PASSWORD_CJK, r"(?:(?<=[\s\x1f\"'`\x80-\xff])|^)(?P<secret>[!-~]{8,100})(?:」|\s)?" + _one_of(_AS_A_PASSWORD_CJK), "cased", "请用{}作为密码", "请用中文作为密码", back=110),
    PlaceRule("said-behind", _BEHIND, r"(?:(?<=[\s\x1f\"'`(:])|^)(?P<secret>[!-~]{8,100}?)\\{0,3}[\"'`]?(?:,|\s(?:—|–|--?))?(?:\s(?:that|this|it|das|c))?" + _one_of(_BEHIND), "cased", "{} - that's the sudo password", "what is the root password", back=130),
    PlaceRule("said-login", _LOGIN_LEADS, _one_of(_LOGIN_LEADS) + r"[\w.@+-]{2,60}(?:\s{0,2}[/:,]\s{0,2}|\s(?:with|using|and)\s(?:the\s)?(?:password\s|pass\s|pw\s)?)" + _SAID + _SAID_END, "mixed", "Log in as ada with {}.", "Log in as ada with your password"),
    PlaceRule("said-login", _LOGIN_ENDS, r"\s(?:mit|met|als)\s[\w.@+-]{2,60}(?:\s(?:und|en|mit|met)\s|\s{0,2}/\s{0,2})(?:(?i:passwort|wachtwoord|kennwort)\s)?" + _SAID + r"\\{0,3}[\"'`]?" + _one_of(_LOGIN_ENDS), "mixed", "Bitte mit ada und {} anmelden.", "Bitte mit ada und bob anmelden.", back=170),
    PlaceRule("said-enter", _TYPE_IT, r"(?i:passw|passphrase|passcode|\bpin\b|token|secret|api[ -]?key|login|credential)[^\r\n.:]{0,50}?" + _one_of(_TYPE_IT) + _SAID + _SAID_END, "cased", "when it asks for a password, type {}", "when it asks for a password, type yours", back=70, next_word=True),
    PlaceRule("said-enter", _NAME_TYPE_IT, _one_of(_NAME_TYPE_IT) + _NO_NAME + _SAID + _SAID_END, "cased", "for the VPN password, use {}.", "for the password, use Argon2Hasher", next_word=True),
    PlaceRule("said-enter", _WHEN_ASKED, r"(?i:enter|type|use|give|put|paste|type in)\s" + _SAID + r"\\{0,3}[\"'`]?" + _one_of(_WHEN_ASKED), "cased", "enter {} when prompted", "enter your password when prompted", back=130),
    PlaceRule("said-here", _HANDED_OVER, _one_of(_HANDED_OVER) + _NO_NAME + _SAID + _SAID_END, "wild", "you'll need this: {} to get in", "you'll need this: Python3Handler", next_word=True),
    PlaceRule("said-given", _GIVEN, _SAYS_NAME + r"[^\r\n.:;]{0,50}?" + _one_of(_GIVEN) + _NO_NAME + _SAID + _SAID_END, "cased", "the secret they gave us, {}, is old", "the secret they gave us, Argon2Hasher, is old", back=80, next_word=True),
    PlaceRule("said-given", ("assword, ", "assphrase, ", "ecret, ", "oken, ", "asscode, ", " key, "), r"\s?\w{3,9},\s" + _NO_NAME + _SAID + r"\\{0,3}[\"'`]?,\s", "cased", "my password, {}, has a sign in it", "my password, Argon2Hasher, has a sign in it", next_word=True),
    PlaceRule("said-then", _THEN, _SAYS_NAME + r"[^\x1e]{0,110}?" + _one_of(_THEN) + _NO_NAME + _SAID + _SAID_END, "given", "I got a new key. It is {}. Please use it", "I got a new key. It is Argon2Hasher. Please use it", back=150, next_word=True),
    PlaceRule("said-unlock", _UNLOCKS, r"(?i:unlock|decrypt|open|encrypt|mount|log[gs]?(?:ged|ing|s)? in|pen|nlock|ecrypt|ogging in|ogs in|ogged in|ount|rotected|ncrypted)[^\r\n.:;]{0,40}?\swith\s(?:the\s(?:key|password)\s)?" + _NO_NAME + _SAID + _SAID_END, "cased", "unlock the LUKS volume with {} and go on", "unlock the LUKS volume with Tpm2Module and go on", back=40, next_word=True),
    PlaceRule("said-chosen", _CHOSEN, _one_of(_CHOSEN) + _NO_NAME + _SAID + r"\\{0,3}[\"'`]?\s(?:for|as)\s[^\r\n.:;]{0,50}?" + _SAYS_NAME, "mixed", "we went with {} for the shared mailbox password", "we went with Argon2Hasher for the password"),
    PlaceRule("said-pair", tuple(f".{end}, " for end in "com org net dev io de co eu fr uk local test app ai me us".split()), r"\([\w.+-]{1,60}@[\w.-]{1,60},\s(?P<secret>[^\s\"'`\\,;()]{6,80})\)", "mixed", "sign in with my account (ada@acme.dev, {})", "ask them (ada@acme.dev, bob@acme.dev)", back=130),
    PlaceRule("said-replace", _WITH, r"(?i:replace|swap|update|overwrite|change|substitute)[^\r\n.]{0,60}?" + _one_of(_WITH) + _NO_NAME + _SAID + _SAID_END, "cased", "Replace the old token with {}.", "Replace the old token with TokenV2Handler", back=80, next_word=True),
    PlaceRule("credential-pair", _PAIR_WORDS, _one_of(_PAIR_WORDS) + r"\s{0,2}(?::|：|=|\sis\s|\sare\s)\s{0,2}[\w.@+-]{2,60}\s{0,2}(?:/|,|:|、|，|\sand\s)\s{0,2}" + _SAID + _SAID_END, "cased", "Inloggegevens: ada / {}", "Inloggegevens: zie de wiki / vraag Ada"),
    PlaceRule("said-changed", _TILL, _one_of(_TILL) + _SAID + _SAID_END, "cased", "Jag bytte lösenord till {}.", "Jag bytte lösenord till något annat", next_word=True),
    PlaceRule("said-changed", ("パスワードを", "비밀번호를 ", "密码改", "密码设", "密码换", "密码更", "暗証番号を"), r"(?:パスワードを|비밀번호를 |密码[^\x00-\x7f]{1,5}?|暗証番号を)\s?「?(?P<secret>[!-~]{6,100})", "mixed", "パスワードを{}に変更しました", "パスワードを変更しました"),
    PlaceRule("said-changed", ("assword, it", "assphrase, it", "oken, it", "ecret, it", "asswort, es", "assword; it", "assword - it", "assword. It"), r"\w{3,9}(?:,|;|\s-|\.)\s(?:[Ii]t(?:'s|’s|\sis)(?:\snow|\scurrently)?|es ist(?:\sjetzt)?)\s" + _SAID + _SAID_END, "cased", "changed the wifi password, it's now {}.", "changed the wifi password, it's now longer"),
    PlaceRule("said-currently", ("ecret (", "oken (", "assword (", "key (", "assphrase ("), r"\w{3,9}\s\((?:currently|now|is|it's|it is|e\.g\.|i\.e\.|was|old:|new:)\s" + _SAID + r"\\{0,3}[\"'`]?\)", "cased", "The secret (currently {}) must go", "The secret (currently unused) must go"),
)  # fmt: skip
FRAME_RULES = (*COMMAND_FRAMES, *CALL_FRAMES, *STATEMENT_FRAMES, *SENTENCE_FRAMES)
