"""What files, dumps, devices and dialogues hold: the lines of password files, settings of network devices, prompts and answers."""

from holdfast.redact.judge import PlaceRule
from holdfast.redact.rules.values import BARE_OR_QUOTED as _QV
from holdfast.redact.rules.values import one_of as _one_of

_LINE = r"(?:\r?\n|\\r\\n|\\n)"
_NAMES = r"(?i:passw(?:or)?d|passwd|passphrase|passcode|pass|pwd|secret|token|api[_-]?key|auth[_-]?key|private[_-]?key|access[_-]?key)"
_SECRET_FILES = tuple(
    "rsyncd.secrets chap-secrets pap-secrets userlist.txt sasl_passwd passwd.client htpasswd passwords.txt creds.txt credentials.txt mosquitto.passwd".split()
)
_ORACLE = ("expdp ", "impdp ", "sqlldr ", "sqlcl ", "sqlplus ")
_BOLD = tuple(f"{name}** |" for name in ("assword", "assphrase", "ecret", "oken", "ey", "PIN", "asscode"))

RECORD_RULES = (
    # Lines of password files.
    PlaceRule("password-file", _SECRET_FILES, _one_of(_SECRET_FILES) + r"\S{0,3}" + _LINE + r"(?:[#;][^\r\n]{0,80}" + _LINE + r"){0,3}\s{0,4}\\{0,3}\"?[\w.@*-]{1,60}\\{0,3}\"?(?:\s{1,4}\*)?[\s:]{1,8}\\{0,3}\"?(?P<secret>[^\s\"':\\]{6,200})", "mixed", "# /etc/rsyncd.secrets\nbackup:{}", "# /etc/rsyncd.secrets\nbackup:\n"),
    PlaceRule("password-list", ("chpasswd:",), r"chpasswd:\s{1,40}(?:expire:\s\w{4,5}\s{1,20})?(?:list:\s[|>]-?|users:)\s{1,40}(?P<secret>(?:-\s)?[\w.-]{1,40}:[^\s\"'\\]{4,100}(?:\s{1,20}[\w.-]{1,40}:[^\s\"'\\]{4,100}){0,8})(?=\s|$|\\n)", "any", "chpasswd:\n  list: |\n    ubuntu:{}\n", "chpasswd:\n  expire: false\n"),
    PlaceRule("samba-hash", (":LCT-", ":[U ", ":[W "), r"[0-9A-FX]{32}:(?P<secret>[0-9A-F]{32}):\[[A-Z ]{2,14}\]", "certain", "ada:1001:XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX:<H32>:[U          ]:LCT-65000000:", "ada:1001:[U          ]:", back=100),
    PlaceRule("windows-hash", ("* NTLM", "* SHA1", "* LM ", "* DPAPI", "* AES256"), r"\* (?:NTLM|SHA1|LM|DPAPI|AES256)\s{1,8}:\s(?P<secret>[0-9a-fA-F]{32,64})", "certain", "* NTLM     : <h32>", "* NTLM     : none"),
    PlaceRule("kerberos-key", ("-96) ", "-192) ", "-hmac) ", "-128) "), r"[\w-]{2,12}\)\s{1,4}\(0x(?P<secret>[0-9a-f]{32,64})\)", "certain", "host/h@CORP (aes256-cts-hmac-sha1-96)  (0x<h64>)", "(aes256-cts-hmac-sha1-96)  (0x1)"),
    PlaceRule("dns-key", ("hmac-md5:", "hmac-sha1:", "hmac-sha224:", "hmac-sha256:", "hmac-sha384:", "hmac-sha512:"), r"hmac-\w{3,6}:[\w.-]{1,80}:(?P<secret>[A-Za-z0-9+/=]{16,120})", "any", "nsupdate -y hmac-sha256:ddns:<w24>", "nsupdate -y hmac-sha256:ddns:$KEY"),
    PlaceRule("scram-verifier", ("SCRAM-SHA-256$", "SCRAM-SHA-512$"), r"SCRAM-SHA-\d{3}\$\d{1,7}:(?P<secret>[A-Za-z0-9+/=]{8,64}\$[A-Za-z0-9+/=]{20,100}:[A-Za-z0-9+/=]{20,100})", "certain", "SCRAM-SHA-256$4096:<w24>$<w44>:<w44>", "SCRAM-SHA-256$4096"),
    # Settings of devices and systems.
    PlaceRule("device-password", ("tacacs-server ", "radius-server ", "tacacs server ", "radius server "), r"(?:tacacs|radius)[- ]server\s[^\r\n]{0,100}?\s?key\s(?:\d\s)?(?P<secret>[^\s\"'\\]{6,120})", "mixed", "tacacs-server host 10.0.0.9 key {}", "tacacs-server host 10.0.0.9 key chain"),
    PlaceRule("device-password", (" ENC ",), r"set\s[\w-]{2,30}\sENC\s(?P<secret>[A-Za-z0-9+/=]{20,400})", "certain", "set password ENC <w60>", "set password ENC $X", back=40),
    PlaceRule("wifi-password", ("<keyMaterial>",), r"<keyMaterial>(?P<secret>[^<\s]{8,64})</", "password", "<keyMaterial>{}</keyMaterial>", "<keyMaterial></keyMaterial>"),
    PlaceRule("random-password", ("random_password", "random_string"), r"random_(?:password|string)\\{0,3}\"[^\x1e]{0,500}?\\{0,3}\"(?:result|bcrypt_hash)\\{0,3}\"\s{0,3}:\s{0,3}\\{0,3}\"(?P<secret>[^\"\\\s]{6,200})", "mixed", "\"type\":\"random_password\",\"attributes\":{\"result\":\"{}\"}", "\"type\":\"random_password\",\"attributes\":{\"length\":20}"),
    PlaceRule("wallet-key", ("accounts:", "accounts\":", "accounts =", "privateKeys:"), r"(?:accounts|privateKeys)\\{0,3}\"?\s{0,3}[:=]\s{0,3}\[\s{0,8}\\{0,3}[\"'`](?P<secret>(?:0x)?[0-9a-fA-F]{64})", "certain", "networks:{main:{accounts:[\"0x<h64>\"]}}", "accounts:[\"0x<h40>\"]"),
    # Fields of forms, dumps and tables.
    PlaceRule("form-password", ("form-data; name=",), r"form-data; name=\\{0,3}\"[\w.\[\]-]{0,40}" + _NAMES + r"[\w.\[\]-]{0,20}\\{0,3}\"(?:" + _LINE + r"Content-Type:[^\r\n\\]{0,60})?" + _LINE + _LINE + r"(?P<secret>[^\s\"'\\]{4,400})", "mixed", "Content-Disposition: form-data; name=\"password\"\n\n{}\n--b", "Content-Disposition: form-data; name=\"password\"\n\nnone\n--b"),
    PlaceRule("serialized-password", ("\";s:", "\\\";s:"), _NAMES + r"\\{0,3}\";s:\d{1,4}:\\{0,3}\"(?P<secret>[^\"\\\s]{4,400})", "mixed", "s:8:\"password\";s:12:\"{}\";", "s:8:\"password\";s:4:\"none\";", back=30),
    PlaceRule("bold-password", _BOLD, r"(?i:" + _NAMES + r"|key|pin)\*\*\s\|\s{1,4}\\{0,3}`?(?P<secret>[^\s`|\"'\\<>]{6,400})", "mixed", "| **API secret** | `{}` |", "| **API secret** | required |", back=16),
    # Prompts and what is typed at them.
    PlaceRule("prompt-password", ("assword for ", "assphrase for ", "asswort für "), r"\w{6,9}\s(?:for|für)\s(?:key\s)?\\{0,3}[\"'][^\"'\r\n\\]{1,160}\\{0,3}[\"']:\s{1,2}(?P<secret>[^\s\"'\\]{4,200})(?=\s|$|\\n|\x1f)", "mixed", "Password for 'https://ada@git.example': {}", "Password for 'https://ada@git.example': none"),
    PlaceRule("ftp-password", ("ftp> user ",), r"ftp> user\s[\w.@-]{1,60}\s" + _QV, "mixed", "ftp> user ada {}", "ftp> user ada"),
    # Programs.
    PlaceRule("oracle-password", _ORACLE, r"(?<![\w.-])" + _one_of(_ORACLE) + r"(?:-\w{1,3}\s){0,3}(?:\w{2,10}=)?\\{0,3}[\"']?[A-Za-z][\w.$]{1,30}/(?P<secret>[^\s\"'/@\\]{6,60})(?=[\s@\"'\\]|$)", "cased", "expdp system/{} full=y", "sqlplus docs/Chapter2"),
    PlaceRule("stored-secret", ("vault kv put ", "vault kv patch ", "vault write "), r"vault\s(?:kv\s)?\w{3,5}\s(?:-\S{1,40}\s){0,3}[\w./-]{1,80}\s(?:[\w.-]{1,40}=[^\s]{1,80}\s){0,4}?[\w.-]{1,40}=" + _QV, "token", "vault kv put secret/app key={}", "vault kv put secret/app key=@file.json"),
    PlaceRule("registry-token", ("cargo login ", "cargo owner "), r"cargo login\s(?:--?[\w-]{1,20}[ =][\w.-]{1,40}\s){0,3}(?P<secret>[A-Za-z0-9_-]{20,120})", "token", "cargo login --registry acme {}", "cargo login --registry acme"),
    PlaceRule("snmp-password", ("snmp",), r"snmp\w{3,8}\s[^\r\n;|]{0,200}?\s-X\s{0,2}(?P<secret>[^\s\"'\\]{6,80})", "any", "snmpwalk -v3 -u a -X {} host", "snmpwalk -v3 -X $X host", needs="-X"),
    PlaceRule("radius-password", ("radtest ",), r"radtest\s(?:-\w{1,2}(?:\s\w{2,10})?\s){0,4}[\w.@-]{1,60}\s" + _QV, "mixed", "radtest ada {} 10.0.0.2 0 x", "radtest ada $PW 10.0.0.2 0 x"),
    PlaceRule("erlang-cookie", ("-setcookie ", "--cookie ", "erlang.cookie", ".set_cookie("), r"(?:-setcookie\s|--cookie\s|erlang\.cookie\s?[\n>]\s?|\.set_cookie\()[:\\\"']{0,3}(?P<secret>[A-Za-z0-9_-]{16,80})", "any", "erl -name a@h -setcookie <w20>", "erl -name a@h -setcookie $COOKIE"),
    PlaceRule("password-argument", ("user:password ", "user-password ", "upwd ", "set-password "), r"(?:user[:-]password|upwd|set-password)\s(?:--?[\w-]{1,20}\s){0,2}[\w.@-]{1,60}\s(?:--password=)?" + _QV, "mixed", "drush user:password ada \"{}\"", "drush user:password ada"),
    PlaceRule("here-string", ("<<< ", "<<<\"", "<<<'"), r"(?i:-W|passw|login|auth|sudo|stdin|token|secret|crypt|gpg|ssh-add|vault)[^\r\n]{0,100}<<<\s?" + _QV, "cased", "psql -W <<< {}", "cat -W <<< something", back=120),
    PlaceRule("piped-secret", ("| secret-tool", "| vncpasswd", "| openconnect", "-on-stdin", "| x11vnc", "| mount", "| veracrypt", "| age ", "| zip", "| keepassxc-cli", "| security "), r"(?:echo|printf)\s(?:-\w+\s)?(?:\\{0,3}[\"']?%s(?:\\+n)?\\{0,3}[\"']?\s)?\\{0,3}[\"']?(?P<secret>[^\s\"'\\|]{6,300})(?:\\+n[^\s\"'|]{0,60})?\\{0,3}[\"']?\s{0,4}\|", "mixed", "printf %s '{}' | secret-tool store --label=x", "echo $PW | secret-tool store --label=x", back=360),
    PlaceRule("nt-hash", ("-hashes ", "--hash "), r"(?:-hashes|--hash)\s(?:[0-9a-fA-F]{32})?:(?P<secret>[0-9a-fA-F]{32})(?![0-9a-fA-F])", "certain", "wmiexec.py -hashes :<h32> ada@h", "wmiexec.py -hashes :x"),
)  # fmt: skip
