"""Sessions from the tests of the pipeline: all that they send through ``OneSwitch``, with the entries it then has."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from finsy.proto import p4r

from tests import p4src as pipeline_tests
from tests.bmv2.emulated import entries_of
from tests.bmv2.session import CPU_PORT, Packet, Session
from tests.p4src.one_switch import OneSwitch, Sent


def sessions_of_pipeline_tests() -> list[Session]:
    """Run tests/p4src; packets that meet the same entries make one session. Raises RuntimeError where a test fails."""
    found: dict[tuple[bytes, ...], tuple[tuple[p4r.Entity, ...], dict[Packet, None]]] = {}
    with _observed(found):
        outcome = pytest.main(["-q", "-p", "no:cacheprovider", str(Path(pipeline_tests.__path__[0]))])
    if outcome != pytest.ExitCode.OK:
        raise RuntimeError("the tests of the pipeline fail: nothing is recorded")
    return [Session(entries, tuple(packets)) for entries, packets in found.values()]


@contextmanager
def _observed(found: dict[tuple[bytes, ...], tuple[tuple[p4r.Entity, ...], dict[Packet, None]]]) -> Iterator[None]:
    send, packet_out = OneSwitch.send, OneSwitch.packet_out

    def note(switch: OneSwitch, *packets: Packet) -> None:
        entries = entries_of(switch.control)
        identity = tuple(entity.SerializeToString(deterministic=True) for entity in entries)
        found.setdefault(identity, (entries, {}))[1].update(dict.fromkeys(packets))

    def noted_send(self: OneSwitch, port: int, *frames: bytes) -> list[Sent]:
        note(self, *(Packet(port, frame) for frame in frames))
        return send(self, port, *frames)

    def noted_packet_out(self: OneSwitch, octets: bytes) -> list[Sent]:
        note(self, Packet(CPU_PORT, octets))
        return packet_out(self, octets)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OneSwitch, "send", noted_send)
        patch.setattr(OneSwitch, "packet_out", noted_packet_out)
        yield
