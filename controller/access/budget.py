"""A bound on how much of what callers cause is written down."""

from collections.abc import Callable
from dataclasses import dataclass

_MANY = 1_000


@dataclass(slots=True)
class _Account:
    left: float
    counted_s: float
    left_out: int = 0


class Budget:
    """How many lines each account may cause: ``burst`` at once, then ``per_s``; what is more is only counted.

    Args:
        burst: The lines that may come at once.
        per_s: The lines that may come in a second, in the long run.
        now_s: The time.
    """

    def __init__(self, burst: int, per_s: float, now_s: Callable[[], float]) -> None:
        self._burst = burst
        self._per_s = per_s
        self._now_s = now_s
        self._accounts: dict[str, _Account] = {}

    def take(self, name: str) -> int | None:
        """Take one line; returns how many were left out since the one before, None where this one is left out too."""
        now_s = self._now_s()
        if name not in self._accounts:
            self._forget_full(now_s)
        account = self._accounts.setdefault(name, _Account(self._burst, now_s))
        account.left, account.counted_s = self._left(account, now_s), now_s
        if account.left < 1:
            account.left_out += 1
            return None
        account.left -= 1
        left_out, account.left_out = account.left_out, 0
        return left_out

    def _left(self, account: _Account, now_s: float) -> float:
        return min(self._burst, account.left + (now_s - account.counted_s) * self._per_s)

    def _forget_full(self, now_s: float) -> None:
        if len(self._accounts) >= _MANY:
            self._accounts = {
                name: account for name, account in self._accounts.items() if self._left(account, now_s) < self._burst
            }
