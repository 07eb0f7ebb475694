"""What operators do to clients without their help: suspend, resume, migrate (Pathways, section 4.1)."""

from collections.abc import Callable, Iterable, Mapping

from runtime import messages
from runtime.server.accounts import Account, Ledger
from runtime.server.islands import Islands, Slice


class Operations:
    """Carries out what operators ask for.

    A suspended client loses its devices; what it has started runs to its end, and its further requests wait until it is
    resumed; then ``go_on`` starts them. A client that moves gets other devices for what it starts from now on. Its
    arrays stay where they are, and programs fetch them from there.
    """

    def __init__(self, islands: Islands, accounts: Mapping[int, Account], go_on: Callable[[Ledger], None]) -> None:
        self._islands = islands
        self._accounts = accounts
        self._go_on = go_on

    def manage(self, account: Account, message: messages.Manage) -> None:
        """Do what an operator asks for, to each connection of the client, and answer."""
        try:
            account.ledger.settings.check_operator()
            chosen = [each for each in self._accounts.values() if message.client in (each.name, each.label)]
            if not chosen:
                raise ValueError(f"client {message.client!r}: is not connected")
            for each in chosen:
                self._manage(each, message.action, message.island)
        except ValueError as error:
            account.channel.send(messages.Refused(message.request, str(error)))
        else:
            account.channel.send(messages.Managed(message.request, len(chosen)))

    def _manage(self, account: Account, action: str, island: str | None) -> None:
        match action:
            case "suspend":
                self._islands.suspend(account.label)
                account.is_suspended = True
                account.channel.pause()
            case "resume":
                _place(account, self._islands.resume(account.label))
                account.is_suspended = False
                account.channel.resume()
                self._go_on(account.ledger)
            case "migrate":
                _place(account, self._islands.migrate(account.label, island))
            case _:
                raise ValueError(f"action: expected suspend, resume or migrate, got {action!r:.50}")


def _place(account: Account, slices: Iterable[Slice]) -> None:
    for each in slices:
        account.place(each)
