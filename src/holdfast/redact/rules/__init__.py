"""All rules as data: forms of tokens by vendor, constructs that hold a secret, names of secrets."""
