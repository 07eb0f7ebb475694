"""Trace of what happens at the queues and links of a fabric."""

from emulator.engine import state as s
from emulator.observations import TraceKind, TraceRow
from emulator.parts import Parts


class QueueTrace:
    """Rows of the trace that have left the engine's arrays; a fabric without a trace has none."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._rows: list[TraceRow] = []
        self._is_kept = len(parts.first.trace) > 0

    @property
    def is_nearly_full(self) -> bool:
        """Whether a single event might overfill an array."""
        return self._is_kept and any(
            state.scalars[s.TRACED] + s.RESERVE > len(state.trace) for state in self._parts.states
        )

    def collect(self) -> None:
        """Move rows out of the engine's arrays."""
        if not self._is_kept:
            return
        for state in self._parts.states:
            for time_ps, kind, *rest in state.trace[: state.scalars[s.TRACED]].tolist():
                self._rows.append(TraceRow(time_ps, TraceKind(kind), *rest))
            state.scalars[s.TRACED] = 0

    def take(self) -> list[TraceRow]:
        """Return the rows since the last call; those of one moment in order of the links, and at each link in order."""
        self.collect()
        found = sorted(self._rows, key=lambda row: (row.time_ps, row.link, row.level != s.NONE))
        self._rows = []
        return found
