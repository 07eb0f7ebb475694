"""Trace of what happens at the queues and links of a fabric."""

from emulator.engine import state as s
from emulator.observations import TraceKind, TraceRow
from emulator.parts import Parts


class QueueTrace:
    """Rows of the trace that have left the engine's arrays; a fabric without a trace has none."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._rows: list[TraceRow] = []

    @property
    def is_nearly_full(self) -> bool:
        """Whether a single event might overfill an array."""
        return any(
            len(state.trace) and state.scalars[s.TRACED] + s.RESERVE > len(state.trace) for state in self._parts.states
        )

    def collect(self) -> None:
        """Move rows out of the engine's arrays."""
        for state in self._parts.states:
            if not state.scalars[s.TRACED]:
                continue
            for time_ps, kind, *rest in state.trace[: state.scalars[s.TRACED]].tolist():
                self._rows.append(TraceRow(time_ps, TraceKind(kind), *rest))
            state.scalars[s.TRACED] = 0

    def take(self) -> list[TraceRow]:
        """Return the rows since the last call; those of one moment in order of the links, and at each link in order."""
        self.collect()
        found = sorted(self._rows, key=lambda row: (row.time_ps, row.link, row.level != s.NONE))
        self._rows = []
        return found
