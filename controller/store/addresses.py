"""Addresses of databases, and what may be printed of them: never a password or another secret."""

import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from controller.errors import StoreError

_URL = re.compile(r"[a-z][a-z0-9+_]*://", re.IGNORECASE)
_HIDDEN = "***"
_SHORT = 4
"""A secret of fewer characters is hidden only where it stands alone."""
_HARMLESS = frozenset(
    {
        *("application_name", "client_encoding", "connect_timeout", "dbname", "host", "hostaddr", "port", "user"),
        *("keepalives", "keepalives_count", "keepalives_idle", "keepalives_interval", "tcp_user_timeout"),
        *("channel_binding", "gssencmode", "load_balance_hosts", "sslmode", "sslnegotiation", "target_session_attrs"),
        *("cache", "charset", "mode", "timeout", "uri", "vfs"),
    }
)
"""Query parameters whose values are no secrets."""
_IN_URL = re.compile(r"(:/+)\S*@")
_IN_TEXT = re.compile(r"(?i)\b(\w*(?:pass(?:word|wd|phrase|file)?|pwd|secret|token))(\s*=\s*)('[^']*'|[^\s&,;'\"]+)")


def url_of(address: str) -> URL:
    """Return the SQLAlchemy URL of an address: a URL, or the path of an SQLite file. Raises StoreError."""
    if _URL.match(address) is None:
        return URL.create("sqlite", database=address)
    try:
        url = make_url(address)
    except (ArgumentError, ValueError) as error:
        # Not from the error, which may quote the address.
        del error
        url = None
    if url is None:
        raise StoreError("database: not a URL that can be read")
    if "@" in (url.host or ""):
        # What follows the first @ of the password would be taken for the host's name, and shown.
        raise StoreError("database: expected one @ in the URL; in a user's name or a password, write %40 for it")
    return url


def name_of(url: URL) -> str:
    """Return the name of a database for messages: of its parameters, only those that are known to be harmless."""
    if url.get_backend_name() == "sqlite" and url.database:
        return f"database {_without_patterns(url.database)}"
    shown = url.set(query={name: value for name, value in url.query.items() if name in _HARMLESS})
    hidden = "&".join(f"{name}={_HIDDEN}" for name in sorted(url.query.keys() - _HARMLESS))
    text = shown.render_as_string(hide_password=True)
    if hidden:
        text += f"{'&' if shown.query else '?'}{hidden}"
    return f"database {text}"


def without_secrets(text: str, url: URL) -> str:
    """Return a message on one line, such as a driver's, without the secrets of the URL and what looks like one."""
    line = " ".join(text.split())
    for secret in sorted(_secrets(url), key=len, reverse=True):
        pattern = re.escape(secret)
        line = re.sub(pattern if len(secret) >= _SHORT else rf"(?<!\w){pattern}(?!\w)", _HIDDEN, line)
    return _without_patterns(line)


def _without_patterns(text: str) -> str:
    return _IN_TEXT.sub(rf"\1\2{_HIDDEN}", _IN_URL.sub(rf"\1{_HIDDEN}@", text))


def _secrets(url: URL) -> Iterator[str]:
    """The secrets of a URL in the forms in which a message may quote them."""
    values = [] if url.password is None else [str(url.password)]
    for name, value in url.query.items():
        if name not in _HARMLESS:
            values += [value] if isinstance(value, str) else value
    for value in filter(None, values):
        yield from (value, quote(value), quote(value, safe=""), quote_plus(value))
