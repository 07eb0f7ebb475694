"""Identities: who makes a call, in which roles, for which tenant."""

from dataclasses import dataclass
from enum import StrEnum

from controller.errors import DaemonError
from topologies.names import MAX_NAME_LENGTH, is_plain


class Role(StrEnum):
    """What an identity may do. An operator may do all that a viewer may."""

    JOB = "job"
    """Register jobs of its tenant, follow their directives, and ask which NIC has an address."""
    AGENT = "agent"
    """Report probes for the host that it is named after."""
    OPERATOR = "operator"
    """Withdraw jobs, drain switches, cables and hosts, pause planning, pin levels and paths."""
    VIEWER = "viewer"
    """Read everything: jobs, flows, rules, switches, links, explanations."""


class IdentityError(DaemonError, ValueError):
    """A certificate or a token does not describe an identity; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Somebody who makes calls.

    Attributes:
        name: The name: of a person, a program, or of the host for which an agent speaks.
        roles: What the identity may do.
        tenant: The tenant that its jobs belong to; empty where there are no tenants.
        is_known: False for whoever calls a controller that asks nobody for an identity.
    """

    name: str
    roles: frozenset[Role]
    tenant: str = ""
    is_known: bool = True

    def __str__(self) -> str:
        """The name, with the roles and the tenant."""
        of = f" of tenant {self.tenant!r}" if self.tenant else ""
        return f"{'/'.join(sorted(self.roles))} {self.name!r}{of}"


def identity(name: object, role: object, tenant: object = "") -> Identity:
    """Make a known identity from what a certificate or a token says.

    A job needs a tenant, and nobody else has one. Raises IdentityError.
    """
    if not (isinstance(name, str) and 0 < len(name) <= MAX_NAME_LENGTH and is_plain(name)):
        raise IdentityError("the name must be printable text without a slash")
    if not isinstance(role, str) or role not in tuple(Role):
        raise IdentityError(f"the role must be one of {', '.join(Role)}")
    if not (isinstance(tenant, str) and len(tenant) <= MAX_NAME_LENGTH and is_plain(tenant)):
        raise IdentityError("the tenant must be printable text without a slash")
    if bool(tenant) != (role == Role.JOB):
        raise IdentityError("a job needs a tenant" if role == Role.JOB else f"the role {role} has no tenant")
    roles = {Role(role)} | ({Role.VIEWER} if role == Role.OPERATOR else set())
    return Identity(name, frozenset(roles), tenant)


def unknown_identity(*, agents: bool) -> Identity:
    """The identity of all who call a controller that asks nobody for one; ``agents``: they may report probes."""
    roles = {Role.JOB, Role.OPERATOR, Role.VIEWER} | ({Role.AGENT} if agents else set())
    return Identity("anybody", frozenset(roles), is_known=False)
