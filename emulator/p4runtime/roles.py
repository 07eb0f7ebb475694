"""Roles of clients: what each may write, read and receive (P4Runtime specification, section 5.2).

The specification leaves it open how a role is described. This server takes what Stratum takes, ``P4RoleConfig``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from finsy.proto import p4r, stratum
from google.protobuf.message import DecodeError

from emulator.p4runtime.errors import invalid_argument, permission_denied, unimplemented

DEFAULT_ROLE = ""

_MAX_NAME = 256


@dataclass(frozen=True, slots=True)
class Permissions:
    """The permissions of a role; those of a role without a config, and of the default role, are all there are.

    ``ids`` has the P4Info ids of the tables, profiles and counters that it may write, None: any. No other role with a
    config may write the ``exclusive`` ones of these. If there is a ``packet_filter``, the role receives only packets
    whose metadata of this id has this value.
    """

    ids: frozenset[int] | None = None
    exclusive: frozenset[int] = frozenset()
    receives_packets: bool = True
    pushes_pipeline: bool = True
    packet_filter: tuple[int, int] | None = None

    def receives(self, packet: p4r.PacketIn) -> bool:
        """Tell whether the role receives a packet."""
        if not self.receives_packets or self.packet_filter is None:
            return self.receives_packets
        known = {metadata.metadata_id: int.from_bytes(metadata.value, "big") for metadata in packet.metadata}
        wanted_id, value = self.packet_filter
        return known.get(wanted_id) == value

    def covers(self, entity: p4r.Entity) -> bool:
        """Tell whether the role includes an entity."""
        return self.ids is None or _id_of(entity) in self.ids


ALL = Permissions()


def permissions_of(role: p4r.Role, others: Mapping[str, Permissions]) -> Permissions:
    """Return the permissions of a role that a client bids for.

    Raises RequestError: UNIMPLEMENTED for a role by number, INVALID_ARGUMENT for a config that is not a P4RoleConfig or
    claims what one of the ``others`` has for itself.
    """
    if role.id:
        raise unimplemented(f"role id {role.id}: roles by number are not supported, only by name")
    if len(role.name) > _MAX_NAME:
        raise invalid_argument(f"the role's name has more than {_MAX_NAME} characters")
    if not role.HasField("config"):
        return ALL
    if role.name == DEFAULT_ROLE:
        raise invalid_argument("the default role has no config")
    config = stratum.P4RoleConfig()
    try:
        is_config = role.config.Unpack(config)
    except DecodeError:
        is_config = False
    if not is_config:
        raise invalid_argument(f"role {role.name!r}: its config is not a stratum.P4RoleConfig")
    exclusive, shared = frozenset(config.exclusive_p4_ids), frozenset(config.shared_p4_ids)
    for name, other in others.items():
        taken = _claimed(other, exclusive) | (other.exclusive & shared)
        if name != role.name and taken:
            raise invalid_argument(
                f"role {role.name!r}: role {name!r} has {min(taken):#010x}, which one has exclusively"
            )
    ids, packet_filter = exclusive | shared, None
    if config.HasField("packet_in_filter"):
        wanted = config.packet_in_filter
        packet_filter = wanted.metadata_id, int.from_bytes(wanted.value, "big")
    return Permissions(ids, exclusive, config.receives_packet_ins, config.can_push_pipeline, packet_filter)


def require_covered(permissions: Permissions, role: str, entity: p4r.Entity) -> None:
    """Raise RequestError, PERMISSION_DENIED, for an entity outside of a role."""
    if not permissions.covers(entity):
        raise permission_denied(f"role {role!r} does not include this {entity.WhichOneof('entity') or 'entity'}")


def covered(permissions: Permissions, entities: Iterable[p4r.Entity]) -> list[p4r.Entity]:
    """Return the entities that a role includes."""
    return [entity for entity in entities if permissions.covers(entity)]


def _claimed(permissions: Permissions, ids: frozenset[int]) -> frozenset[int]:
    return frozenset() if permissions.ids is None else permissions.ids & ids


def _id_of(entity: p4r.Entity) -> int | None:
    match entity.WhichOneof("entity"):
        case "table_entry":
            return entity.table_entry.table_id
        case "action_profile_member":
            return entity.action_profile_member.action_profile_id
        case "action_profile_group":
            return entity.action_profile_group.action_profile_id
        case "direct_counter_entry":
            return entity.direct_counter_entry.table_entry.table_id
        case "direct_meter_entry":
            return entity.direct_meter_entry.table_entry.table_id
        case "counter_entry":
            return entity.counter_entry.counter_id
        case "meter_entry":
            return entity.meter_entry.meter_id
        case "register_entry":
            return entity.register_entry.register_id
        case "value_set_entry":
            return entity.value_set_entry.value_set_id
        case "digest_entry":
            return entity.digest_entry.digest_id
    return None
