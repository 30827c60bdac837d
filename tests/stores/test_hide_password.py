"""No message tells the password of the database."""

import pytest

from holdfast.core.errors import BadSettings
from holdfast.stores import hide_password, open_store


@pytest.mark.parametrize(
    "address",
    ["postgresql://me:s3cr@t@host/db", "mysql://u:s3cr@t@h", "host=x password=s3cr@t", "host=x password='s3cr@t it'"],
)
def test_it_is_hidden(address: str) -> None:
    assert "s3cr" not in hide_password(f"cannot connect to {address}")


@pytest.mark.parametrize("address", ["mysql://u:s3cret@h/db", "postgresql://u:s3cret@h:port/db?nonsense=1"])
def test_an_address_that_cannot_be_used_is_named_without_it(address: str) -> None:
    with pytest.raises(BadSettings) as refused:
        open_store(address)
    assert "s3cret" not in str(refused.value)
