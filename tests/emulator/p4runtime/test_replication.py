"""Multicast groups and clone sessions over P4Runtime."""

import pytest
from finsy.proto import p4r, rpc_code

from emulator.memory import REPLICAS
from emulator.p4runtime.read import read_batch
from emulator.p4runtime.target import Target
from emulator.p4runtime.write import write_batch
from emulator.replication import Replica, Replication, Replicator
from tests.bmv2.session import CPU_PORT
from tests.bmv2.small_programs import REPLICATION, EmulatedProgram
from tests.emulator.p4runtime.messages import DELETE, INSERT, MODIFY
from tests.emulator.p4runtime.writing import write


@pytest.fixture(scope="module")
def emulated() -> EmulatedProgram:
    return EmulatedProgram(REPLICATION)


@pytest.fixture
def target(emulated: EmulatedProgram) -> Target:
    emulated.clear()
    return emulated.target


def group(number: int, *replicas: p4r.Replica, metadata: bytes = b"") -> p4r.Entity:
    entry = p4r.MulticastGroupEntry(multicast_group_id=number, replicas=replicas, metadata=metadata)
    engine = p4r.PacketReplicationEngineEntry(multicast_group_entry=entry)
    return p4r.Entity(packet_replication_engine_entry=engine)


def session(number: int, *replicas: p4r.Replica, service: int = 0, length: int = 0) -> p4r.Entity:
    entry = p4r.CloneSessionEntry(
        session_id=number, replicas=replicas, class_of_service=service, packet_length_bytes=length
    )
    return p4r.Entity(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(clone_session_entry=entry))


def replica(port: bytes | int, instance: int = 0) -> p4r.Replica:
    return (
        p4r.Replica(port=port, instance=instance)
        if isinstance(port, bytes)
        else p4r.Replica(egress_port=port, instance=instance)
    )


def backed(port: int, *backups: tuple[int, int]) -> p4r.Replica:
    """A replica with the ports and instances of its backups."""
    made = [p4r.BackupReplica(port=bytes([0, other]), instance=instance) for other, instance in backups]
    return p4r.Replica(port=bytes([port]), backup_replicas=made)


def read(target: Target, request: p4r.Entity) -> list[p4r.Entity]:
    entities, (result,) = read_batch(target, [request])
    assert result.canonical_code == rpc_code.OK
    return entities


def test_what_was_written_is_read_back_and_in_force(target: Target) -> None:
    written = [
        group(1, replica(b"\0\2", 3), replica(b"\2"), metadata=b"mine"),
        group(2),
        session(1, replica(CPU_PORT, 0xFFFF), service=5, length=64),
    ]
    write_batch(target, [p4r.Update(type=INSERT, entity=entity) for entity in written])
    canonical = [group(1, replica(b"\2", 3), replica(b"\2"), metadata=b"mine"), *written[1:]]
    assert read(target, p4r.Entity(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry())) == canonical
    assert read(target, group(0)) == canonical[:2]
    assert read(target, session(0)) == canonical[2:]
    assert read(target, group(2)) == [canonical[1]]
    assert read(target, group(3)) == []
    groups, sessions = (dict(target.switch.replication(kind)) for kind in Replicator)
    assert groups == {1: Replication((Replica(2, 3), Replica(2))), 2: Replication(())}
    assert sessions == {1: Replication((Replica(CPU_PORT, 0xFFFF),), longest_bytes=64, level=5)}
    write_batch(
        target,
        [p4r.Update(type=MODIFY, entity=group(2, replica(1))), p4r.Update(type=DELETE, entity=group(1, replica(77)))],
    )
    assert read(target, group(0)) == [group(2, replica(1))]
    assert dict(target.switch.replication(Replicator.GROUP)) == {2: Replication((Replica(1),))}


@pytest.mark.parametrize(
    ("kind", "entity", "code"),
    [
        (
            INSERT,
            p4r.Entity(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry()),
            rpc_code.INVALID_ARGUMENT,
        ),
        (INSERT, group(0, replica(1)), rpc_code.INVALID_ARGUMENT),
        (INSERT, group(0x10000, replica(1)), rpc_code.INVALID_ARGUMENT),
        (INSERT, group(7, replica(1)), rpc_code.ALREADY_EXISTS),
        (INSERT, group(8, replica(4)), rpc_code.INVALID_ARGUMENT),
        (INSERT, group(8, replica(1, 0x10000)), rpc_code.INVALID_ARGUMENT),
        (INSERT, group(8, p4r.Replica(instance=1)), rpc_code.INVALID_ARGUMENT),
        (INSERT, group(8, replica(b"\1\0\0\0\1")), rpc_code.OUT_OF_RANGE),
        (INSERT, group(8, replica(1, 2), replica(b"\1", 2)), rpc_code.INVALID_ARGUMENT),
        (INSERT, group(8, *(replica(1, n) for n in range(512))), rpc_code.RESOURCE_EXHAUSTED),
        (INSERT, group(8, backed(1, (1, 7))), rpc_code.INVALID_ARGUMENT),
        (INSERT, group(8, backed(1, (4, 7))), rpc_code.INVALID_ARGUMENT),
        (INSERT, group(8, backed(1, (2, 0x10000))), rpc_code.INVALID_ARGUMENT),
        (INSERT, group(8, backed(1, (2, 7), (2, 7))), rpc_code.INVALID_ARGUMENT),
        (INSERT, group(8, backed(1, (2, 7)), replica(2, 7)), rpc_code.INVALID_ARGUMENT),
        (INSERT, group(8, p4r.Replica(port=b"\1", backup_replicas=[p4r.BackupReplica()])), rpc_code.OUT_OF_RANGE),
        (INSERT, session(0), rpc_code.INVALID_ARGUMENT),
        (INSERT, session(0x8000), rpc_code.INVALID_ARGUMENT),
        (INSERT, session(7), rpc_code.ALREADY_EXISTS),
        (INSERT, session(8, service=8), rpc_code.INVALID_ARGUMENT),
        (INSERT, session(8, length=-1), rpc_code.INVALID_ARGUMENT),
        (MODIFY, group(8), rpc_code.NOT_FOUND),
        (MODIFY, group(7, replica(4)), rpc_code.INVALID_ARGUMENT),
        (MODIFY, session(8), rpc_code.NOT_FOUND),
        (DELETE, group(8), rpc_code.NOT_FOUND),
        (DELETE, session(8), rpc_code.NOT_FOUND),
    ],
)
def test_what_is_refused_changes_nothing(
    target: Target, kind: p4r.Update.Type.ValueType, entity: p4r.Entity, code: rpc_code.Code.ValueType
) -> None:
    there = [group(7, replica(1), replica(2)), session(7, replica(3))]
    write_batch(target, [p4r.Update(type=INSERT, entity=entity) for entity in there])
    assert write(target, kind, entity).canonical_code == code
    assert read(target, p4r.Entity(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry())) == there


def test_backups_are_read_in_order_and_in_canonical_form(target: Target) -> None:
    written = group(1, backed(1, (3, 9), (2, 5)))
    write_batch(target, [p4r.Update(type=INSERT, entity=written)])
    [found] = read(target, group(0))
    [back] = found.packet_replication_engine_entry.multicast_group_entry.replicas
    assert [(other.port, other.instance) for other in back.backup_replicas] == [(b"\3", 9), (b"\2", 5)]
    assert dict(target.switch.replication(Replicator.GROUP)) == {
        1: Replication((Replica(1, 0, (Replica(3, 9), Replica(2, 5))),))
    }


def test_the_first_port_that_is_up_takes_the_copy(target: Target) -> None:
    write_batch(target, [p4r.Update(type=INSERT, entity=group(1, backed(1, (3, 9), (2, 5)), replica(2)))])
    write_batch(target, [p4r.Update(type=INSERT, entity=session(1, backed(1, (3, 9))))])
    switch = target.switch

    def in_force(kind: Replicator) -> list[tuple[int, int]]:
        block, size = switch.replication(kind)._blocks[1]
        words = switch._arena.words[block + REPLICAS : block + size].tolist()
        return list(zip(words[::2], words[1::2], strict=True))

    try:
        for down, expected in (
            ((), (1, 0)),
            ((1,), (3, 9)),
            ((1, 3), (2, 5)),
            ((3,), (1, 0)),
            ((1, 2, 3), (1, 0)),  # where it is lost
            ((1, 2), (3, 9)),
            ((), (1, 0)),
        ):
            for port in (1, 2, 3):
                switch.set_port(port, port not in down)
            assert in_force(Replicator.GROUP) == [expected, (2, 0)]
            assert in_force(Replicator.SESSION) == [(3, 9) if down and 1 in down and 3 not in down else (1, 0)]
            # One that is written now knows which ports are up.
            write_batch(target, [p4r.Update(type=INSERT, entity=group(2, backed(1, (3, 9), (2, 5))))])
            block, _ = switch.replication(Replicator.GROUP)._blocks[2]
            assert tuple(switch._arena.words[block + REPLICAS : block + REPLICAS + 2].tolist()) == expected
            write_batch(target, [p4r.Update(type=DELETE, entity=group(2))])
    finally:
        for port in (1, 2, 3):
            switch.set_port(port, True)
