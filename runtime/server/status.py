"""The state of the runtime, for people: what hosts hold and run, and what clients have."""

import asyncio
import os
from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from runtime import messages
from runtime.server.accounts import Account
from runtime.server.hosts import Host
from runtime.server.islands import Islands
from runtime.server.publications import Publications

if TYPE_CHECKING:
    from runtime.server.announcements import Announcements

_USAGE_S = 2.0


class StatusReports:
    """Asks all hosts what they hold, and tells the client that asked."""

    def __init__(
        self,
        islands: Islands,
        hosts: Mapping[int, Host],
        accounts: Mapping[int, Account],
        publications: Publications,
        announcements: "Announcements | None",
    ) -> None:
        self._islands = islands
        self._hosts = hosts
        self._accounts = accounts
        self._publications = publications
        self._announcements = announcements
        self._numbers = count()
        self._waiting: dict[int, asyncio.Future[Mapping[str, Any]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def answer(self, account: Account, message: messages.AskStatus) -> None:
        """Answer a client, once the hosts have."""
        task = asyncio.get_running_loop().create_task(self._send(account, message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def take(self, message: messages.Usage) -> None:
        """Take what a host answers."""
        waiting = self._waiting.get(message.request)
        if waiting is not None and not waiting.done():
            waiting.set_result(message.usage)

    async def _send(self, account: Account, message: messages.AskStatus) -> None:
        asked = tuple(self._hosts.values())  # some may be gone before they answer
        usages = await asyncio.gather(*(self._usage(host, message.trace) for host in asked))
        hosts = [
            {"host": host.number, "island": host.island, "is_leaving": host.is_leaving, **usage}
            for host, usage in zip(asked, usages, strict=True)
        ]
        clients = list(map(_shown, self._accounts.values()))
        status = {
            "pid": os.getpid(),
            "epoch": self._islands.epoch,
            "hosts": hosts,
            "clients": clients,
            "published": self._publications.shown(),
        }
        if self._announcements is not None:
            status["network"] = self._announcements.shown(trace=message.trace)
        account.channel.send(messages.Status(message.request, status))

    async def _usage(self, host: Host, trace: bool) -> Mapping[str, Any]:
        request = next(self._numbers)
        waiting = self._waiting[request] = asyncio.get_running_loop().create_future()
        host.channel.send(messages.AskUsage(request, trace))
        try:
            return await asyncio.wait_for(waiting, _USAGE_S)
        except TimeoutError:
            return {"answers": False}
        finally:
            self._waiting.pop(request, None)


def _shown(account: Account) -> dict[str, Any]:
    """Return what people see of a connection; the totals are those of all connections of its client."""
    ledger = account.ledger
    return {
        "client": account.label,
        "number": account.number,
        "programs": len(account.programs),
        "slices": sum(number >= 0 for number in account.slices),
        "arrays": len(account.arrays),
        "executions": len(account.executions),
        "held_back": len(account.held_back),
        "is_suspended": account.is_suspended,
        "total": {
            "weight": ledger.settings.weight,
            "arrays": ledger.arrays,
            "held_bytes": ledger.held_bytes,
            "executions": ledger.executions,
            "device_s": ledger.device_s,
            "host_s": ledger.host_s,
        },
    }
