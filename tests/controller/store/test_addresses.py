"""What is said of a database has no secret of its address."""

import pytest

from controller.errors import StoreError
from controller.store.addresses import name_of, url_of, without_secrets
from controller.store.database import Database

_SECRET = "hush-hush"


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("postgresql+psycopg://me:hush-hush@db:5433/x", "postgresql+psycopg://me:***@db:5433/x"),
        ("postgresql+psycopg://me@db/x?password=hush-hush", "postgresql+psycopg://me@db/x?password=***"),
        (
            "postgresql+psycopg://me@/x?host=/run/pg&sslpassword=hush-hush&sslkey=hush-hush&sslmode=require",
            "postgresql+psycopg://me@/x?host=%2Frun%2Fpg&sslmode=require&sslkey=***&sslpassword=***",
        ),
        ("postgresql+psycopg://me@db/x?passfile=hush-hush&options=hush-hush", None),
        ("PostgreSQL://me:hush-hush@db/x", None),
        ("sqlite:///my.db?key=hush-hush", "my.db"),
        ("postgresql:/me:hush-hush@db/x", None),
        ("host=db user=me password=hush-hush", "host=db user=me password=***"),
        ("out/my.db", "out/my.db"),
    ],
)
def test_a_name_has_no_secret(address: str, name: str | None) -> None:
    named = name_of(url_of(address))
    assert _SECRET not in named
    assert name is None or named == f"database {name}"


@pytest.mark.parametrize(
    "said",
    [
        'missing "=" after "hush-hush" in connection info string',
        "failed: postgresql://me:hush-hush@db/x\n  DETAIL: host=db password='hush hush' port=1",
        "failed: password = hush-hush",
        "failed with hush%2Fhush",
    ],
)
def test_what_a_driver_says_is_one_line_without_secrets(said: str) -> None:
    for address in ("postgresql+psycopg://me:hush-hush@db/x", "postgresql+psycopg://me@db/x?password=hush%2Fhush"):
        line = without_secrets(said, url_of(address))
        assert "\n" not in line
        assert "hush hush" not in line
    url = url_of("postgresql+psycopg://me:hush-hush@db/x?sslpassword=hush%2Fhush")
    assert "hush" not in without_secrets(said, url).replace("***", "")


def test_a_short_password_hides_no_parts_of_words() -> None:
    assert without_secrets("a database said a", url_of("postgresql://me:a@db/x")) == "*** database said ***"


@pytest.mark.parametrize(
    "address",
    [
        "postgresql+psycopg://me:hush-hush@127.0.0.1:1/x",
        "postgresql+psycopg://me@127.0.0.1:1/x?password=hush-hush&unknown=hush-hush",
        "postgresql+psycopg://me@127.0.0.1:1/x?sslmode=never&password=hush-hush",
        "oracular://me:hush-hush@db/x",
        "postgresql+psycopg://me:hush-hush@[/x",
        "postgresql+psycopg://me:my@hush-hush@127.0.0.1:1/x",
        "/nowhere/host=db password=hush-hush",
    ],
)
def test_a_database_that_cannot_be_opened_is_named_without_secrets(address: str) -> None:
    with pytest.raises(StoreError) as refused:
        Database.open(address)
    assert _SECRET not in str(refused.value)
    assert "\n" not in str(refused.value)
