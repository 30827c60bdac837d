"""No message shows the password of a database."""

import pytest

from holdfast.core.errors import BadSettings
from holdfast.stores import hide_password, sqlite_path


@pytest.mark.parametrize(
    "address",
    ["postgresql://me:s3cr@t@host/db", "mysql://u:s3cr@t@h", "host=x password=s3cr@t", "host=x password='s3cr@t it'"],
)
def test_it_is_hidden(address: str) -> None:
    assert "s3cr" not in hide_password(f"cannot connect to {address}")


@pytest.mark.parametrize("address", ["mysql://u:s3cret@h/db", "postgresql://u:s3cret@h:port/db?nonsense=1"])
def test_another_database_is_refused_and_the_team_named(address: str) -> None:
    with pytest.raises(BadSettings, match="holdfast team") as refused:
        sqlite_path(address)
    assert "s3cret" not in str(refused.value)
