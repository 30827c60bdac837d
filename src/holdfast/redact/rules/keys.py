"""Keys of cryptography and of wallets, and signed tokens."""

from holdfast.redact.rule import TokenRule

KEY_TOKENS = (
    TokenRule("age-key", "AGE-SECRET-KEY-1<Q40+>"),
    TokenRule("age-plugin-key", "AGE-PLUGIN-<t2+>-1<Q40+>"),
    TokenRule("nostr-key", "nsec1<q50+>"),
    TokenRule("bitcoin-wif", "(5H|5J|5K)<k49>", check="base58", left="strict"),
    TokenRule("bitcoin-wif", "(Kw|Kx|Ky|Kz|L1|L2|L3|L4|L5)<k50>", check="base58", left="strict"),
    TokenRule("testnet-wif", "(cM|cN|cO|cP|cQ|cR|cS|cT|cU|cV)<k50>", check="base58", left="strict"),
    TokenRule("extended-private-key", "(x|t|y|z|u|v)prv<k100+>", left="strict"),
    TokenRule("litecoin-key", "6(u|v)<k49>", check="base58", left="strict"),
    TokenRule("cardano-key", "(ed25519_sk|ed25519e_sk|addr_xsk|root_xsk|acct_xsk)1<q50+>"),
    TokenRule("ripple-seed", "sEd<k28>", check="random", left="strict"),
    TokenRule("cosmos-key", "(edsk|spsk|p2sk)<k50+>", left="strict"),
    TokenRule("jwt", "eyJ<t8+>.eyJ<t8+>.<t8+>"),
    TokenRule("jwe", "eyJ<t16+>..<t8+>.<t8+>.<t8+>"),
    TokenRule("unsigned-jwt", "eyJ<t8+>.eyJ<t8+>"),
    TokenRule("paseto-token", "v(1|2|3|4).(local|public).<t30+>", left="strict"),
    TokenRule("macaroon", "MDAx<j60+>", check="random", left="strict"),
    TokenRule("minisign-key", "RWRTY0Iy<B60+>"),
    TokenRule("signify-key", "RWRCSw<B60+>"),
    TokenRule("fernet-token", "gAAAAA<j80+>"),
    TokenRule("encoded-private-key", "LS0tLS1CRUdJTi<B80+>"),
)
