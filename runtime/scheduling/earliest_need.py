"""Earliest need: the gang with the least slack goes first."""

from runtime.scheduling.gangs import GangRequest
from runtime.scheduling.policy import WithoutAccounts


class EarliestNeed(WithoutAccounts):
    """Gangs go by slack, the time left until they must start; those that nobody needs at a known time go last."""

    def urgency(self, request: GangRequest) -> float:
        """Return the latest start: at any time it orders gangs as their slack does."""
        return request.latest_start_s
