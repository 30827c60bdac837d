"""Names of secrets. The scanner reads a value after them in any notation; the judge says whether it is a secret."""

from holdfast.redact.judge import NameRule

SECRET_QUALIFIERS = frozenset(
    (
        "api app access private secret encryption encrypt decryption signing sign signature master account auth shared subscription deploy license"
        " licence webhook jwt service server storage hmac aes cipher client consumer write read admin integration insert ingest ingestion"
        " rsa dsa ssh gpg pgp ssl tls root user team personal project management maps crypto wallet seed session cookie security"
        " secure nonce in stripe openai anthropic google azure aws hf bot sdk rest live test prod production staging primary secondary"
        " function host registry push vapid notary publish npm pypi token refresh bearer x partner merchant gateway device kms role unseal channel application"
    ).split()
)
"""What may stand before `key`: the value is then judged as a token's is."""

KEY_STEMS = (
    *(
        "_key",
        "-key",
        ".key",
        "Key",
        "?key",
        "&key",
        "apikey",
        "authkey",
        "accesskey",
        "secretkey",
        "privatekey",
        "masterkey",
    ),
    *("accountkey", "API key", "API Key", "SSH key", "HMAC key", "AES key", "JWT key", "SDK key", "AWS key", "GCP key"),
    *(f"{word} key" for word in sorted(SECRET_QUALIFIERS)),
)
"""`key` alone is in every program: what is searched for has what stands before it."""


def _misspell(word: str) -> tuple[str, ...]:
    """The word with one letter left out or with two letters changed round, as people type it in a hurry."""
    short = {word[:at] + word[at + 1 :] for at in range(1, len(word) - 1)}
    turned = {word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(1, len(word) - 1)}
    return tuple(sorted((short | turned) - {word}))


# Kind, stems, judge. Several rules share a kind where their names ask for another judge or another part.
NAME_RULES = (
    NameRule("password", ("password", "passwd", "passwrd", "psswd", "pswd", "paswd"), "password"),
    NameRule(
        "password",
        ("passphrase", "pass_phrase", "pass-phrase", "pass phrase", "passPhrase", "PassPhrase", "passcode", "passkey"),
        "phrase",
    ),
    NameRule("password", _misspell("password"), "strong", part="word"),
    NameRule("secret", _misspell("secret"), "strong", part="word"),
    NameRule(
        "key",
        ("api_kye", "api_ky", "apikye", "api_kee", "aip_key", "acces_key", "acess_key", "secert_key", "secrte_key"),
        "strong",
    ),
    NameRule("password", ("pass", "psw", "pw", "pwd"), "password", part="word"),
    NameRule("password-german", ("passwort", "kennwort", "Passwörter", "Passwort", "Kennwort"), "password"),
    NameRule("password-spanish", ("contraseña", "contrasena", "contraseñas", "CONTRASEÑA"), "password"),
    NameRule("password-spanish", ("clave",), "password", part="word"),
    NameRule(
        "password-french", ("mot de passe", "mot_de_passe", "motdepasse", "motDePasse", "mdp"), "password", part="word"
    ),
    NameRule("password-portuguese", ("senha", "palavra-passe", "palavra_passe"), "password", part="word"),
    NameRule("password-italian", ("parola d'ordine", "parola_chiave"), "password"),
    NameRule("password-dutch", ("wachtwoord",), "password"),
    NameRule(
        "password-nordic",
        (
            "lösenord",
            "losenord",
            "lösenordet",
            "losenordet",
            "adgangskode",
            "adgangskoden",
            "passord",
            "passordet",
            "salasana",
            "salasanasi",
            "lykilorð",
            "kodeord",
            "kodeordet",
        ),
        "password",
    ),
    NameRule("password-polish", ("hasło", "haslo", "HASŁO", "Hasło", "hasła", "hasłem"), "password"),
    NameRule(
        "password-czech",
        (
            "heslo",
            "hesla",
            "jelszó",
            "jelszava",
            "jelszavam",
            "parolă",
            "parolası",
            "geslo",
            "lozinka",
            "slaptažodis",
            "parole",
        ),
        "password",
        part="word",
    ),
    NameRule(
        "password-turkish",
        ("şifre", "sifre", "Şifre", "şifresi", "şifrem", "Şifresi", "parola"),
        "password",
        part="word",
    ),
    NameRule("password-russian", ("пароль", "Пароль", "ПАРОЛЬ", "паролем", "пароля"), "password"),
    NameRule("password-ukrainian", ("гасло", "Гасло"), "password"),
    NameRule("password-greek", ("κωδικός", "Κωδικός", "συνθηματικό", "парола", "Парола", "лозинка"), "password"),
    NameRule("password-arabic", ("كلمة المرور", "كلمة السر"), "password"),
    NameRule("password-hebrew", ("סיסמה", "סיסמא"), "password"),
    NameRule("password-hindi", ("पासवर्ड",), "password"),
    NameRule("password-japanese", ("パスワード", "暗証番号"), "password"),
    NameRule("password-chinese", ("密码", "密碼", "口令"), "password"),
    NameRule("password-korean", ("비밀번호", "암호", "패스워드"), "password"),
    NameRule("password-vietnamese", ("mật khẩu", "Mật khẩu", "kata sandi", "รหัสผ่าน"), "password"),
    NameRule(
        "password",
        (
            "wifi code",
            "wi-fi code",
            "wifi key",
            "wlan key",
            "wlan-schlüssel",
            "WLAN-Schlüssel",
            "WLAN-Key",
            "Netzwerkschlüssel",
        ),
        "password",
    ),
    NameRule("pin", ("passcode", "access code", "door code", "security code", "unlock code", "lock code"), "pin"),
    NameRule(
        "pin", ("code secret", "Code secret", "code PIN", "código PIN", "codice PIN", "pincode", "PIN-Code"), "pin"
    ),
    NameRule("key", ("this key", "the key", "following key", "my key", "your key", "our key"), "strong"),
    NameRule(
        "key",
        (
            *("der Schlüssel", "Der Schlüssel", "la clé", "La clé", "la chiave", "La chiave", "a chave", "A chave"),
            *("de sleutel", "De sleutel", "klucz", "Klucz", "ключ", "Ключ", "キー"),
        ),
        "strong",
    ),
    NameRule("pin", ("code for the door", "code for the gate", "code for the alarm", "code for the safe"), "pin"),
    NameRule(
        "pin", ("el pin", "El pin", "il pin", "Il pin", "le pin", "die Pin", "Die Pin", "my pin", "your pin"), "pin"
    ),
    NameRule("pin", ("pin code", "pin_code", "pincode", "PIN"), "pin", part="word"),
    NameRule(
        "pin",
        ("_pin", "-pin", "alarm code", "gate code", "entry code", "safe code", "keypad code", "Пин-код", "пин-код"),
        "pin",
    ),
    NameRule("pre-shared-key", ("psk", "PSK"), "strong", part="word"),
    NameRule(
        "backup-code", ("backup code", "recovery code", "backup_code", "recovery_code", "2fa code", "otp code"), "code"
    ),
    NameRule(
        "backup-code", ("2FA code", "2FA-Code", "OTP code", "MFA code", "TOTP code", "SMS code", "login code"), "code"
    ),
    NameRule(
        "backup-code",
        (
            *("Bestätigungscode", "Einmalcode", "Einmalpasswort", "code de vérification", "código de verificación"),
            *(
                "codice di verifica",
                "código de verificação",
                "verificatiecode",
                "kod weryfikacyjny",
                "код подтверждения",
            ),
            *("验证码", "驗證碼", "認証コード", "confirmation code", "authentication code"),
        ),
        "code",
    ),
    NameRule(
        "backup-code",
        ("one-time code", "one time password", "one-time password", "scratch code", "verification code"),
        "code",
    ),
    NameRule("secret", ("secret",), "token"),
    NameRule("token", ("token", "tokken"), "token", part="key"),
    NameRule(
        "token",
        (
            *("jeton", "jeton d'accès", "jeton d’accès", "zugriffstoken", "токен", "Токен", "令牌", "トークン", "토큰"),
            *("токен доступа", "Токен доступа", "访问令牌", "アクセストークン"),
        ),
        "token",
    ),
    NameRule("key", KEY_STEMS, "token", part="key", stem_width=3),
    NameRule(
        "key",
        (
            "clave api",
            "clave API",
            "clave de la API",
            "clave de API",
            "clé api",
            "clé API",
            "clé d'api",
            "clé d'API",
            "api-schlüssel",
            "API-Schlüssel",
            "chave de api",
            "chave de API",
            "chave da API",
            "chave API",
            *("chave_api", "clave_api", "api_chave", "api_clave"),
            "chiave api",
            "chiave API",
            "klucz API",
            "API-sleutel",
            "API-nyckel",
            "API-nøgle",
            "ключ API",
            "API-ключ",
            *("Clave API", "Clave de API", "Clave de la API", "Clé API", "Clé d'API", "Clé d’API", "clé d’API"),
            *(
                "clé de l'API",
                "Clé de l'API",
                "Chave de API",
                "Chave da API",
                "Chave API",
                "Chiave API",
                "chiave dell'API",
            ),
            *("Klucz API", "klucz api", "klucza API", "Ключ API", "ключ api", "api ключ", "API ключ", "api-ключ"),
            *("API-Key", "API anahtarı", "kunci API", "API kulcs", "klíč API", "API klíč", "API-avain"),
        ),
        "token",
    ),
    NameRule("key", ("APIキー", "api 密钥", "API密钥", "密钥", "密鑰", "API 키"), "token"),
    NameRule("credential", ("credential", "creds"), "token"),
    NameRule("authorization", ("authorization",), "token"),
    NameRule("authorization", ("auth",), "strong", spoken=False, part="word"),
    NameRule("bearer", ("bearer", "jwt"), "strong", spoken=False, part="word"),
    NameRule("personal-access-token", ("_pat", "-pat", "_PAT", "-PAT", " PAT", "PAT="), "strong", part="tail"),
    NameRule("salt", ("salt", "pepper"), "strong", spoken=False, part="word"),
    NameRule("snmp-community", ("community_string", "snmp_community", "community string"), "password"),
    NameRule("password", ("authtok", "auth_tok", "authTok", "AuthTok"), "password"),
    NameRule("seed", ("seed",), "strong", spoken=False, part="word"),
    NameRule("session-id", ("sessionid", "sessid", "phpsessid", "jsessionid"), "strong", part="cookie"),
    NameRule("session-id", ("connect.sid", "_session", "remember_token"), "strong", part="cookie"),
    NameRule("code-verifier", ("code_verifier", "client_assertion"), "token"),
    NameRule("encryption-key", ("cipher", "fernet", "encryption"), "strong", spoken=False, part="word"),
    NameRule("license", ("licence", "license"), "strong", spoken=False, part="word"),
)


# These rule a value out; an unknown word before `key` only asks for one that is clearly random.
PLAIN_QUALIFIERS = frozenset(
    (
        "public publishable pub site primary foreign cache sort partition idempotency object row hash dict map group route nav query file"
        " order i18n translation translations locale item list tab index unique composite natural surrogate event lookup dedupe bucket registry"
        " menu hot shortcut arrow reg json next page continuation sync cursor resume pagination publickey cancel cancellation syntax"
        " lexer eos bos pad stop special cls sep mask unk start end current prev previous last first peek expected"
        " image color colour design theme css font spacing msg message label title trie search state storage_path react"
        " kv hash_ip range candidate natural_ doc document entity record config setting settings column field attr attribute"
        " stream lock mutex metric trace span request correlation transaction etag upload part marker count max min num total"
        " input output prompt completion cached reasoning thought audio video text"
    ).split()
)
"""What may stand before `key` or `token` without making it a secret."""
