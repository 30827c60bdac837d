"""Which memories are told: valid, and of use for what is asked next."""
