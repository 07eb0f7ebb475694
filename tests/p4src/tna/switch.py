"""One switch of the Tofino Native Architecture: ingress, traffic manager, egress."""

import contextlib
from dataclasses import dataclass

from tests.p4src.tna.program import ExitedError, Half, NoMatchError, RunningProgram

FCS_BYTES = 4
PORT_METADATA_BYTES = 8
NO_PORT = 511
"""Leads nowhere; what no program sends anywhere is sent there."""

PARSER_ERROR_NO_MATCH = 0x0001
PARSER_ERROR_PARTIAL_HEADER = 0x0002

_INGRESS = "ingress_intrinsic_metadata_t"
_FROM_INGRESS_PARSER = "ingress_intrinsic_metadata_from_parser_t"
_FOR_INGRESS_DEPARSER = "ingress_intrinsic_metadata_for_deparser_t"
_FOR_TRAFFIC_MANAGER = "ingress_intrinsic_metadata_for_tm_t"
_EGRESS = "egress_intrinsic_metadata_t"
_FROM_EGRESS_PARSER = "egress_intrinsic_metadata_from_parser_t"
_FOR_EGRESS_DEPARSER = "egress_intrinsic_metadata_for_deparser_t"


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a packet meets: clock readings, and how many cells its queue holds when it comes and when it leaves."""

    ingress_time_ns: int = 0
    egress_time_ns: int = 0
    enqueue_depth_cells: int = 0
    dequeue_depth_cells: int = 0


@dataclass(frozen=True, slots=True)
class Sent:
    """A packet that has left: by this port, from this queue of it."""

    port: int
    queue: int
    octets: bytes


class TooShortError(Exception):
    """A parser wants more bytes than there are."""


class Reader:
    """Bytes of a packet that are yet to be parsed."""

    def __init__(self, octets: bytes) -> None:
        self._octets = octets
        self._position = 0

    def take(self, num_bytes: int) -> int:
        """The next bytes as a number; raises ``TooShortError``."""
        end = self._position + num_bytes
        if end > len(self._octets):
            raise TooShortError
        taken = int.from_bytes(self._octets[self._position : end], "big")
        self._position = end
        return taken

    def advance(self, bits: int) -> None:
        """Skip bytes; raises ``TooShortError``."""
        self.take(bits // 8)

    def ahead(self, bits: int) -> int:
        """The next bits, which stay; raises ``TooShortError``."""
        num_bytes = (bits + 7) // 8
        end = self._position + num_bytes
        if end > len(self._octets):
            raise TooShortError
        return int.from_bytes(self._octets[self._position : end], "big") >> num_bytes * 8 - bits

    def rest(self) -> bytes:
        """What nobody has taken."""
        return self._octets[self._position :]


class Switch:
    """Runs a program; its tables, counters, meters and registers are ``program.tables`` and ``program.objects``."""

    def __init__(self, program: RunningProgram) -> None:
        self.program = program

    def process(self, octets: bytes, port: int, conditions: Conditions) -> Sent | None:
        """What becomes of a frame without its FCS that comes in by a port; None where it is dropped.

        Raises ``NotImplementedError`` for packets that are to be copied, mirrored or sent to a group.
        """
        values, sent = self._ingress(octets, port, conditions)
        if sent is None or values[f"{_FOR_TRAFFIC_MANAGER}.bypass_egress"]:
            return sent
        return self._egress(sent, conditions)

    def _ingress(self, octets: bytes, port: int, conditions: Conditions) -> tuple[dict[str, int], Sent | None]:
        half = self.program.ingress
        values = dict(half.initial)
        values["$counted_bytes"] = len(octets) + FCS_BYTES
        values[f"{_FOR_TRAFFIC_MANAGER}.ucast_egress_port"] = NO_PORT
        values[f"{_FROM_INGRESS_PARSER}.global_tstamp"] = conditions.ingress_time_ns
        intrinsic = {"ingress_port": port, "ingress_mac_tstamp": conditions.ingress_time_ns}
        reader = Reader(self._header(_INGRESS, intrinsic) + bytes(PORT_METADATA_BYTES) + octets)
        error = _parse(half, values, reader)
        if error & PARSER_ERROR_NO_MATCH or (error and not half.reads_parser_error):
            return values, None
        values[f"{_FROM_INGRESS_PARSER}.parser_err"] = error
        packet = _run(half, values, reader)
        traffic = {
            name: values.get(f"{_FOR_TRAFFIC_MANAGER}.{name}", 0)
            for name in ("ucast_egress_port", "qid", "mcast_grp_a", "mcast_grp_b", "copy_to_cpu")
        }
        if traffic["mcast_grp_a"] or traffic["mcast_grp_b"] or traffic["copy_to_cpu"]:
            raise NotImplementedError("more than one copy of a packet")
        if values[f"{_FOR_INGRESS_DEPARSER}.drop_ctl"] & 1 or traffic["ucast_egress_port"] == NO_PORT:
            return values, None
        return values, Sent(traffic["ucast_egress_port"], traffic["qid"], packet)

    def _egress(self, queued: Sent, conditions: Conditions) -> Sent | None:
        half = self.program.egress
        values = dict(half.initial)
        length_bytes = len(queued.octets) + FCS_BYTES
        values["$counted_bytes"] = length_bytes
        values[f"{_FROM_EGRESS_PARSER}.global_tstamp"] = conditions.egress_time_ns
        intrinsic = {
            "egress_port": queued.port,
            "egress_qid": queued.queue,
            "enq_qdepth": conditions.enqueue_depth_cells,
            "deq_qdepth": conditions.dequeue_depth_cells,
            "enq_tstamp": conditions.ingress_time_ns,
            "deq_timedelta": conditions.egress_time_ns - conditions.ingress_time_ns,
            "pkt_length": length_bytes,
        }
        reader = Reader(self._header(_EGRESS, intrinsic) + queued.octets)
        values[f"{_FROM_EGRESS_PARSER}.parser_err"] = _parse(half, values, reader)
        packet = _run(half, values, reader)
        if values[f"{_FOR_EGRESS_DEPARSER}.drop_ctl"] & 1:
            return None
        return Sent(queued.port, queued.queue, packet)

    def _header(self, kind: str, values: dict[str, int]) -> bytes:
        """Intrinsic metadata as it stands before a packet; fields without a value are 0, high bits are lost."""
        packed = width = 0
        for leaf in self.program.layouts.leaves(kind, ""):
            value = values.get(leaf.path.removeprefix("."), 0) & leaf.number.mask
            packed, width = packed << leaf.number.bits | value, width + leaf.number.bits
        return packed.to_bytes(width // 8, "big")


def _parse(half: Half, values: dict[str, int], reader: Reader) -> int:
    """Take headers; the error that ended it."""
    state = half.parse
    try:
        while state is not None:
            state = state(values, reader)
    except TooShortError:
        return PARSER_ERROR_PARTIAL_HEADER
    except NoMatchError:
        return PARSER_ERROR_NO_MATCH
    return 0


def _run(half: Half, values: dict[str, int], reader: Reader) -> bytes:
    """Control and deparser: the packet that leaves this half."""
    with contextlib.suppress(ExitedError):
        half.control(values)
    out: list[bytes] = []
    half.deparse(values, out)
    return b"".join(out) + reader.rest()
