"""Static tokens: a file with the identities of those who may call, each with the hash of its token.

Example::

    - {name: alice, role: operator, sha256: 9f86d081…}
    - {name: nightly, role: job, tenant: vision, sha256: 60303ae2…, expires: 2027-01-31T00:00:00Z}

Tokens are long and random, so that a plain hash of one cannot be turned back. ``trainyard token`` makes them.
"""

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import yaml
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from controller.access.identity import Identity, IdentityError, Role, identity
from topologies.documents import parse_document

TOKEN_BYTES = 32


class TokenEntry(BaseModel):
    """One line of the file of tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    role: Role
    tenant: str = ""
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    expires: AwareDatetime | None = None


@dataclass(frozen=True, slots=True)
class KnownToken:
    """An identity, and until when its token holds (Unix time); None: for ever."""

    identity: Identity
    expires_s: float | None


def token_hash(token: str) -> str:
    """The hash by which the file knows a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def new_token() -> str:
    """A new random token."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def parse_tokens(content: bytes) -> Mapping[str, KnownToken]:
    """Read a file of tokens; returns what each token stands for, by its hash. Raises ValueError."""
    try:
        contents, repeated = parse_document(content.decode())
        if repeated:
            raise ValueError(str(repeated[0]))
        entries = TypeAdapter(tuple[TokenEntry, ...]).validate_python(contents)
    except UnicodeDecodeError as error:
        raise ValueError("is not a text file") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    tokens: dict[str, KnownToken] = {}
    for position, entry in enumerate(entries):
        if entry.sha256 in tokens:
            raise ValueError(f"{position}.sha256: two entries have the same token")
        try:
            known = identity(entry.name, entry.role, entry.tenant)
        except IdentityError as error:
            raise ValueError(f"{position}: {error}") from error
        tokens[entry.sha256] = KnownToken(known, None if entry.expires is None else entry.expires.timestamp())
    return tokens


def token_entry(token: str, name: str, role: Role, tenant: str, expires: datetime | None) -> str:
    """The line of a file of tokens for a new token. Raises IdentityError."""
    identity(name, role, tenant)
    entry = {"name": name, "role": str(role)}
    if tenant:
        entry["tenant"] = tenant
    entry["sha256"] = token_hash(token)
    if expires is not None:
        entry["expires"] = expires.astimezone(UTC).isoformat(timespec="seconds")
    return str(yaml.safe_dump(entry, default_flow_style=True, sort_keys=False, width=1_000)).strip()
