"""What a policy tells the scheduler: how gangs rank."""

from typing import Protocol

from runtime.scheduling.gangs import GangRequest


class Policy(Protocol):
    """Ranks the gangs that wait: smaller ranks go first.

    The rank of a gang is (clock of its client, urgency, number). The clock moves on as the client is served, the rest
    stays. A policy may keep accounts; it reads no time.
    """

    def urgency(self, request: GangRequest) -> float:
        """Return what ranks a gang among those of its client; it never changes."""

    def clock(self, client: str) -> float:
        """Return what ranks a client among others. It must never decrease while the client has gangs that wait."""

    def joined(self, client: str) -> None:
        """Note that a client which had no gang, waiting or granted, has one."""

    def left(self, client: str) -> None:
        """Note that a client has no gang any more, waiting or granted."""

    def granted(self, client: str, device_s: float) -> None:
        """Charge a client what a gang is expected to occupy, in device-seconds."""

    def corrected(self, client: str, device_s: float) -> None:
        """Charge a client what a gang occupied above its estimate; negative where it occupied less."""

    def forgot(self, client: str) -> None:
        """Note that a client is gone for good."""


class WithoutAccounts:
    """The part of a policy to which all clients are alike."""

    def clock(self, client: str) -> float:  # noqa: ARG002 - all alike
        """Return 0: all clients rank alike."""
        return 0.0

    def joined(self, client: str) -> None:
        """Keep no account."""

    def left(self, client: str) -> None:
        """Keep no account."""

    def granted(self, client: str, device_s: float) -> None:
        """Keep no account."""

    def corrected(self, client: str, device_s: float) -> None:
        """Keep no account."""

    def forgot(self, client: str) -> None:
        """Keep no account."""
