"""Mininet's network, with a test of throughput that ends."""

from typing import Any

from mininet.net import Mininet


class FabricMininet(Mininet):
    """A network of Mininet. ``mn`` makes one of this class."""

    def iperf(self, *arguments: Any, fmt: str | None = None, **parameters: Any) -> Any:
        """Measure the throughput between two hosts, as Mininet does.

        Mininet 2.3 waits for two reports of the server, and iperf 2.1 makes none of the connection that has only looked
        whether it listens. So the server reports every second; the last report is that of the whole time.
        """
        return super().iperf(*arguments, fmt=f"{fmt or 'a'} -i 1", **parameters)
