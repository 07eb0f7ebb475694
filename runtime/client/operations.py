"""What operators do to clients and hosts, from a program."""

from dataclasses import replace

from runtime import messages
from runtime.client.requests import Requests
from runtime.substrates.interface import DEFAULT_KIND, NewHost, Substrate


class Operations:
    """The part of a runtime that is for operators alone."""

    address: str
    _requests: Requests

    def suspend(self, client: str) -> None:
        """Take the devices of a client away, until it is resumed; its requests wait meanwhile.

        Only operators may. Raises RefusedError, which names what is wrong.
        """
        self._requests.ask(lambda request: messages.Manage(request, "suspend", client, None))

    def resume(self, client: str) -> None:
        """Give a suspended client devices again, perhaps others. Only operators may. Raises as ``suspend``."""
        self._requests.ask(lambda request: messages.Manage(request, "resume", client, None))

    def migrate(self, client: str, island: str | None = None) -> None:
        """Move a client to an island, or to where static balance puts it. Only operators may. Raises as ``suspend``."""
        self._requests.ask(lambda request: messages.Manage(request, "migrate", client, island))

    def add_host(
        self,
        island: str,
        devices: int = 2,
        *,
        device_memory_bytes: int = 1 << 30,
        host_memory_bytes: int = 4 << 30,
        kind: str = DEFAULT_KIND,
        substrate: Substrate | None = None,
    ) -> int:
        """Let a host with so many devices join an island, and return its number once it is there.

        The server starts its executor, or the ``substrate`` does, on this side. Slices that fitted nowhere get its
        devices; others stay where they are until their client is migrated. Only operators may. Raises as ``suspend``,
        and ValueError for what is no host.
        """
        asked = (NewHost(island, devices, device_memory_bytes, host_memory_bytes, kind), substrate is not None)
        answers = self._requests.ask_for(lambda request: messages.AddHost(request, *asked), messages.HostAdmitted)
        answer = answers.next()
        if isinstance(answer, messages.HostAdmitted) and substrate is not None:
            substrate.spawn(replace(answer.settings, server=self.address))
            answer = answers.next()
        assert isinstance(answer, messages.HostAdded)
        return answer.host

    def remove_host(self, host: int, timeout_s: float | None = None) -> int:
        """Let a host leave, and return how many arrays have moved from it to others.

        Its slices get other devices at once, and nothing new begins there. What has begun runs to its end, however long
        that takes; then the host ends. Only operators may.

        Raises:
            RefusedError: A slice or an array has no room elsewhere; nothing has changed then.
            TimeoutError: It has not left yet; it still will.
        """
        answer = self._requests.ask(lambda request: messages.RemoveHost(request, host), timeout_s)
        assert isinstance(answer, messages.HostRemoved)
        return answer.arrays
