"""PacketReplicationEngineEntry: multicast groups and clone sessions (P4Runtime specification, section 9.5)."""

from collections.abc import Iterator

from finsy.proto import p4r

from emulator.p4runtime.bytestrings import decode_value, encode_value
from emulator.p4runtime.errors import invalid_argument
from emulator.p4runtime.target import Target
from emulator.p4runtime.watch_ports import PORT_BITS
from emulator.replication import Replica, Replication, Replicator

_Entry = p4r.PacketReplicationEngineEntry
_KINDS = {Replicator.GROUP: "multicast_group_entry", Replicator.SESSION: "clone_session_entry"}


def write_replication(target: Target, kind: p4r.Update.Type.ValueType, message: _Entry) -> None:
    """Insert, modify or delete a group or a session.

    Raises RequestError or SwitchError, and then changes nothing: INVALID_ARGUMENT for an impossible number, port or
    instance and for a duplicate replica, RESOURCE_EXHAUSTED for too many replicas.
    """
    replicator = _replicator_of(message)
    number = _number_of(message)
    memory = target.switch.replication(replicator)
    if kind == p4r.Update.DELETE:
        memory.delete(number)
        del target.notes.replications[replicator, number]
        return
    replication, canonical = _decode(replicator, message)
    if kind == p4r.Update.INSERT:
        memory.insert(number, replication)
    else:
        memory.modify(number, replication)
    target.notes.replications[replicator, number] = canonical


def read_replications(target: Target, request: _Entry) -> Iterator[_Entry]:
    """Return the groups or sessions that a request selects: number 0 is a wildcard, no type selects both."""
    kind = request.WhichOneof("type")
    wanted = _number_of(request) if kind else 0
    for (replicator, number), message in target.notes.replications.items():
        if kind in (None, _KINDS[replicator]) and wanted in (0, number):
            yield message


def _replicator_of(message: _Entry) -> Replicator:
    kind = message.WhichOneof("type")
    for replicator, name in _KINDS.items():
        if kind == name:
            return replicator
    raise invalid_argument("the type of the packet replication engine entry is not set")


def _number_of(message: _Entry) -> int:
    if message.HasField("multicast_group_entry"):
        return message.multicast_group_entry.multicast_group_id
    return message.clone_session_entry.session_id


def _decode(replicator: Replicator, message: _Entry) -> tuple[Replication, _Entry]:
    """Decode an entry; return it also with its ports in canonical form."""
    canonical = _Entry()
    canonical.CopyFrom(message)
    if replicator is Replicator.GROUP:
        group = canonical.multicast_group_entry
        where = f"{replicator} {group.multicast_group_id}"
        return Replication(tuple(_decode_replica(replica, where) for replica in group.replicas)), canonical
    session = canonical.clone_session_entry
    where = f"{replicator} {session.session_id}"
    if session.packet_length_bytes < 0:
        raise invalid_argument(f"{where}: packet_length_bytes cannot be {session.packet_length_bytes}")
    replication = Replication(
        tuple(_decode_replica(replica, where) for replica in session.replicas),
        longest_bytes=session.packet_length_bytes or None,
        level=session.class_of_service or None,
    )
    return replication, canonical


def _decode_replica(message: p4r.Replica, where: str) -> Replica:
    backups = tuple(Replica(_decode_port(backup, where), backup.instance) for backup in message.backup_replicas)
    match message.WhichOneof("port_kind"):
        case "port":
            return Replica(_decode_port(message, where), message.instance, backups)
        case "egress_port":
            return Replica(message.egress_port, message.instance, backups)
        case _:
            raise invalid_argument(f"{where}: a replica has no port")


def _decode_port(message: p4r.Replica | p4r.BackupReplica, where: str) -> int:
    """Decode a port, and leave it in canonical form."""
    port = decode_value(message.port, PORT_BITS, f"{where}, port")
    message.port = encode_value(port)
    return port
