"""Who may call a controller, as its configuration says."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from controller.access.authenticator import Anybody, Authenticator, authenticator
from controller.access.identity import Identity
from controller.access.options import Quotas
from controller.api.calls import CallRecorder, Calls
from controller.config import ControllerConfig

if TYPE_CHECKING:
    # SQLAlchemy is slow to import, and a controller without a database does not need it.
    from controller.store.audit import AuditTrail


def calls_of(config: ControllerConfig, trail: "AuditTrail | None", quotas_of: Callable[[str], Quotas]) -> Calls:
    """The admission of calls; ``trail`` records them, None: nobody does. Raises UnusableFileError."""
    return Calls(authenticator_of(config), quotas_of, None if trail is None else _recorder(trail))


def authenticator_of(config: ControllerConfig) -> Authenticator:
    """What tells who calls. Raises UnusableFileError."""
    if config.has_identities:
        return authenticator(config.tokens, config.jwt)
    return Anybody(agents=config.agents)


def _recorder(trail: "AuditTrail") -> CallRecorder:
    from controller.store.audit import Call

    def record(caller: Identity, method: str, subject: str, outcome: str, problem: str) -> None:
        roles = "/".join(sorted(caller.roles))
        trail.record_call(Call(caller.name, caller.tenant, roles, method, subject, outcome, problem))

    return record
