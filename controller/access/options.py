"""The options of the configuration file on who may do what; see docs/security.md."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class JwtOptions(BaseModel):
    """The key that verifies signed tokens (JSON Web Tokens, RFC 7519), and what they must say."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: Path
    """A public key (PEM), or the shared secret of an HS algorithm; read again when it changes."""
    algorithm: Literal[
        "EdDSA", "ES256", "ES384", "ES512", "RS256", "RS384", "RS512", "PS256", "HS256", "HS384", "HS512"
    ]
    """The only algorithm that is accepted."""
    issuer: str | None = None
    audience: str = "trainyard"
    max_lifetime_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 86_400.0
    """The longest time from ``iat`` to ``exp``."""


class Quotas(BaseModel):
    """What one tenant may hold, and how often and on how many connections one identity may call; None: no limit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    jobs: Annotated[int, Field(ge=0)] | None = 1_000
    flow_groups: Annotated[int, Field(ge=0)] | None = 100_000
    flows: Annotated[int, Field(ge=0)] | None = 200_000
    tasks: Annotated[int, Field(ge=0)] | None = 500_000
    """Of the task graphs of all its jobs."""
    source_ports_per_pair: Annotated[int, Field(ge=0)] | None = 4_096
    """Of the 16,384 that flows between two NICs can have."""
    work: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """The work that all its jobs may claim for an iteration, in the unit of their profiles."""
    connections: Annotated[int, Field(ge=1)] = 1_000
    requests_per_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1_000.0
    """Of every identity; a call of more than 4 KiB counts once more for every 4 KiB."""


UNLIMITED = Quotas(jobs=None, flow_groups=None, flows=None, tasks=None, source_ports_per_pair=None)
"""The quotas where nobody is asked for an identity."""
