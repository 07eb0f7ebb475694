"""Devices that run what they were granted, in that order, and block in collectives."""

from collections import deque
from collections.abc import Iterable

from runtime.scheduling.gangs import GangRequest


class SimulatedDevices:
    """A queue per device. A gang runs when it is at the head on all of its devices, and its inputs are there.

    Attributes:
        queues: By device, the gangs that it has still to run, in order.
        ran: The gangs that have ended, in order.
    """

    def __init__(self) -> None:
        self.ran: list[int] = []
        self.queues: dict[int, deque[int]] = {}
        self._requests: dict[int, GangRequest] = {}
        self._aborted: set[int] = set()
        self._ended: set[int] = set()

    def enqueue(self, request: GangRequest) -> None:
        """Enqueue a granted gang on its devices."""
        self._requests[request.number] = request
        for device in request.devices:
            self.queues.setdefault(device, deque()).append(request.number)

    def abort(self, numbers: Iterable[int]) -> None:
        """Let gangs end when their turn comes, without waiting for inputs."""
        self._aborted.update(numbers)

    @property
    def num_unfinished(self) -> int:
        return len(self._requests)

    def runnable(self) -> list[int]:
        """Return the gangs that can run now: nothing else ever can unless one of them ends."""
        return [
            number
            for number, request in self._requests.items()
            if all(self.queues[device][0] == number for device in request.devices)
            and (number in self._aborted or self._ended.issuperset(request.after))
        ]

    def end(self, number: int) -> None:
        """End a gang that can run."""
        for device in self._requests.pop(number).devices:
            assert self.queues[device].popleft() == number
        self._ended.add(number)
        self.ran.append(number)
