"""Random sessions with the program that copies packets: what a packet wants done stands in its first header."""

import struct
from random import Random

from finsy.proto import p4r

from tests.bmv2.session import CPU_PORT, Packet, Session

PACKETS_PER_SESSION = 24

CLONE, RESUBMIT, MULTICAST, CLONE_EGRESS, RECIRCULATE, DROP, DROP_EARLY, FOREVER = (1 << bit for bit in range(8))
GROUP, EMPTY_GROUP, MISSING_GROUP = 5, 7, 9
SESSION, WIDE_SESSION, MISSING_SESSION = 4, 6, 9
REPLICAS = {
    GROUP: ((1, 7), (2, 8), (2, 9), (CPU_PORT, 1)),
    EMPTY_GROUP: (),
    SESSION: ((2, 3),),
    WIDE_SESSION: ((1, 3), (CPU_PORT, 0xFFFF)),
}


def request(
    what: int, *, value: int = 0, session: int = SESSION, group: int = GROUP, port: int = 1, payload: bytes = b""
) -> bytes:
    """A packet that wants something done to it."""
    return struct.pack("!BBHHH", what, value, session, group, port) + payload


def group_entry(number: int) -> p4r.Entity:
    """A multicast group."""
    entity = p4r.Entity()
    group = entity.packet_replication_engine_entry.multicast_group_entry
    group.multicast_group_id = number
    for port, instance in REPLICAS[number]:
        group.replicas.add(egress_port=port, instance=instance)
    return entity


def session_entry(number: int) -> p4r.Entity:
    """A clone session."""
    entity = p4r.Entity()
    session = entity.packet_replication_engine_entry.clone_session_entry
    session.session_id = number
    for port, instance in REPLICAS[number]:
        session.replicas.add(egress_port=port, instance=instance)
    return entity


def replication_session(seed: int) -> Session:
    """The session of a seed; nothing in it goes on forever."""
    random = Random(seed)
    entries = group_entry(GROUP), group_entry(EMPTY_GROUP), session_entry(SESSION), session_entry(WIDE_SESSION)
    return Session(entries, tuple(_arrival(random) for _ in range(PACKETS_PER_SESSION)))


def _arrival(random: Random) -> Packet:
    octets = request(  # always whole: what fields of a header are that was not parsed, no two switches agree on
        random.randrange(FOREVER),
        value=random.randrange(256),
        session=random.choice((SESSION, WIDE_SESSION, MISSING_SESSION)),
        group=random.choice((GROUP, EMPTY_GROUP, MISSING_GROUP)),
        port=random.choice((1, 2, 3, CPU_PORT, CPU_PORT + 1)),
        payload=random.randbytes(random.choice((0, 10, 18, 30))),
    )
    return Packet(random.randint(1, 3), octets)
