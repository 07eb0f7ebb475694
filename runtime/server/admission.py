"""Which programs of a client may start: so many as its quota allows are under way, and others are held back, in order.

Held back with a program is what must come after it: that what it takes is needed no more, and questions for what it
makes. All else goes on. So a client that sends too much waits, as it would for devices that are busy. When very much
is held back, its connection is read no further until some of it has started.
"""

from collections.abc import Callable
from typing import Any

from runtime import messages
from runtime.server.accounts import Account, Ledger

_MOST_HELD = 1000
_MOST_HELD_BYTES = 64 << 20
_NOTHING = memoryview(b"")


class Admission:
    """Starts programs, or holds them back.

    ``start`` starts one, ``handle`` takes any other message. ``soon`` calls a function when the present turn is over:
    programs end in the middle of what must not be disturbed.
    """

    def __init__(
        self,
        start: Callable[[Account, messages.Execute, memoryview], None],
        handle: Callable[[Account, Any], None],
        soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self._start = start
        self._handle = handle
        self._soon = soon

    def execute(self, account: Account, message: messages.Execute, payload: memoryview) -> None:
        """Start a program, or hold it back."""
        if not account.held_back and account.ledger.has_room:
            self._start(account, message, payload)
            return
        account.ledger.waiting[account] = None
        self._hold(account, message, payload)

    def take(self, account: Account, message: object) -> None:
        """Handle another message, or hold back what must come after programs that are held back."""
        if account.held_back:
            rest = self._rest(account, message)
            if rest is message:
                self._hold(account, message)
                return
            if isinstance(message, messages.Release) and isinstance(rest, messages.Release):
                self._hold(account, rest)
                late = set(rest.handles)
                message = messages.Release(tuple(each for each in message.handles if each not in late))
        self._handle(account, message)

    def _hold(self, account: Account, message: object, payload: memoryview = _NOTHING) -> None:
        """Hold a message back. Where that is very much, the connection is read no further."""
        account.held_back.append((message, payload))
        account.held_back_bytes += len(payload)
        if len(account.held_back) >= _MOST_HELD or account.held_back_bytes >= _MOST_HELD_BYTES:
            account.channel.pause()

    def ended(self, ledger: Ledger) -> None:
        """Note that a program of a client has ended."""
        if ledger.waiting:
            self._soon(lambda: self.go_on(ledger))

    def go_on(self, ledger: Ledger) -> None:
        """Start what was held back, as far as the quota allows, of all connections in turn."""
        turns = [each for each in ledger.waiting if not each.is_suspended]
        while turns:
            account = turns.pop(0)
            if self._advance(account):
                turns.append(account)
                ledger.waiting[account] = ledger.waiting.pop(account)  # others come first next time
            if not account.held_back:
                ledger.waiting.pop(account, None)
            if len(account.held_back) < _MOST_HELD // 2 and account.held_back_bytes < _MOST_HELD_BYTES // 2:
                account.channel.resume()

    def drop(self, account: Account) -> None:
        """Forget what was held back of a connection that has ended."""
        account.ledger.waiting.pop(account, None)
        account.held_back.clear()

    def _advance(self, account: Account) -> bool:
        """Take what comes next of a connection, up to one program; return whether there may be more to do."""
        while account.held_back:
            message, payload = account.held_back[0]
            if isinstance(message, messages.Execute) and not account.ledger.has_room:
                return False
            account.held_back.popleft()
            account.held_back_bytes -= len(payload)
            if isinstance(message, messages.Execute):
                self._start(account, message, payload)
                return True
            self._handle(account, message)
        return False

    def _rest(self, account: Account, message: object) -> object | None:
        """Return the part of a message that must come after what is held back; None if there is none."""
        if isinstance(message, messages.Fetch):
            return None if message.handle in account.arrays else message
        held = [each for each, _ in account.held_back]
        if isinstance(message, messages.Publish | messages.Withdraw):
            named = message.handles if isinstance(message, messages.Publish) else ()
            is_late = any(isinstance(each, messages.Publish) for each in held) or set(named) - account.arrays.keys()
            return message if is_late else None
        if isinstance(message, messages.Release):
            taken: set[int] = set()
            for each in held:
                if isinstance(each, messages.Execute):
                    taken.update(each.arguments, each.results)
                elif isinstance(each, messages.Publish):
                    taken.update(each.handles)
                elif isinstance(each, messages.Fetch):
                    taken.add(each.handle)
            late = tuple(handle for handle in message.handles if handle in taken)
            return messages.Release(late) if late else None
        return None
