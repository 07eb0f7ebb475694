"""First in, first out: the policy of the paper's own implementation (Pathways, section 4.4)."""

from runtime.scheduling.gangs import GangRequest
from runtime.scheduling.policy import WithoutAccounts


class Fifo(WithoutAccounts):
    """Gangs go in the order of their numbers."""

    def urgency(self, request: GangRequest) -> float:  # noqa: ARG002 - all alike
        """Return 0: only the number tells gangs apart."""
        return 0.0
