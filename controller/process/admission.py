"""Who may call a controller, as its configuration says."""

from controller.access.authenticator import Anybody, Authenticator, authenticator
from controller.api.calls import CallRecorder, Calls
from controller.config import ControllerConfig


def calls_of(config: ControllerConfig, record: CallRecorder | None = None) -> Calls:
    """The admission of calls; ``record`` writes them to the audit trail. Raises UnusableFileError."""
    return Calls(_authenticator(config), config.quotas_of, record)


def _authenticator(config: ControllerConfig) -> Authenticator:
    if config.has_identities:
        return authenticator(config.tokens, config.jwt)
    return Anybody(agents=config.agents)
