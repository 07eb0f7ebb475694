"""ActionProfileMember and ActionProfileGroup (P4Runtime specification, section 9.2)."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import grpc
from finsy.proto import p4r

from emulator.entries import ActionCall, ActionSet, EntryAction, GroupReference, MemberReference
from emulator.p4runtime.action_types import Profile
from emulator.p4runtime.bytestrings import encode_value
from emulator.p4runtime.errors import RequestError, failed_precondition, invalid_argument, not_found
from emulator.p4runtime.table_actions import LARGEST_GROUP_SIZE
from emulator.p4runtime.target import Target
from emulator.p4runtime.translate import decode_action, encode_action
from emulator.p4runtime.watch_ports import decode_watch_port


@dataclass(frozen=True, slots=True)
class _Members:
    """Members of a group, each repeated by its weight, and the ports that they watch."""

    ids: tuple[int, ...]
    watch_ports: dict[int, int]


def write_member(target: Target, kind: p4r.Update.Type.ValueType, message: p4r.ActionProfileMember) -> None:
    """Insert, modify or delete a member. Raises RequestError or SwitchError, and then changes nothing."""
    profile = target.schema.profile(message.action_profile_id)
    if message.member_id == 0:
        raise invalid_argument(f"action profile {profile.name}: a member's id cannot be 0")
    if kind == p4r.Update.DELETE:
        _refuse_member_in_use(target, profile, message.member_id)
        target.switch.delete_member(profile.name, message.member_id)
        return
    _refuse_beside_sets(target, profile)
    action = _decode_member_action(target, profile, message)
    if kind == p4r.Update.INSERT:
        target.switch.insert_member(profile.name, message.member_id, action)
    else:
        target.switch.modify_member(profile.name, message.member_id, action)


def write_group(target: Target, kind: p4r.Update.Type.ValueType, message: p4r.ActionProfileGroup) -> None:
    """Insert, modify or delete a group; it contains a member of weight w w times.

    Raises RequestError or SwitchError, and then changes nothing.
    """
    profile = target.schema.profile(message.action_profile_id)
    if not profile.has_selector:
        raise invalid_argument(f"action profile {profile.name} has no selector and so no groups")
    if message.group_id == 0:
        raise invalid_argument(f"action profile {profile.name}: a group's id cannot be 0")
    where = (profile.name, message.group_id)
    if kind == p4r.Update.DELETE:
        if GroupReference(message.group_id) in _references(target, profile):
            raise failed_precondition(f"group {message.group_id} of {profile.name} is used by a table entry")
        target.switch.delete_group(*where)
        target.notes.group_max_sizes.pop(where, None)
        return
    _refuse_beside_sets(target, profile)
    _check_max_size(profile, message.max_size)
    members = _decode_members(target, profile, message)
    if kind == p4r.Update.INSERT:
        # The switch counts a member as often as its weight says.
        places = max(message.max_size, len(members.ids)) if profile.counts_members else message.max_size
        target.switch.insert_group(*where, members.ids, places, members.watch_ports)
        target.notes.group_max_sizes[where] = message.max_size
        return
    max_size = target.notes.group_max_sizes.get(where, message.max_size)
    if message.max_size != max_size:
        raise invalid_argument(f"group {message.group_id}: max_size is {max_size} and cannot become {message.max_size}")
    target.switch.modify_group(*where, members.ids, members.watch_ports)


def read_members(target: Target, request: p4r.ActionProfileMember) -> Iterator[p4r.ActionProfileMember]:
    """Return the members that a request selects; id 0 is a wildcard. Raises RequestError."""
    for profile in _selected_profiles(target, request.action_profile_id, request.member_id):
        for member_id, action in target.switch.members(profile.name).items():
            if request.member_id in (0, member_id):
                yield p4r.ActionProfileMember(
                    action_profile_id=profile.id,
                    member_id=member_id,
                    action=encode_action(target.schema, action),
                )


def read_groups(target: Target, request: p4r.ActionProfileGroup) -> Iterator[p4r.ActionProfileGroup]:
    """Return the groups that a request selects; id 0 is a wildcard. Raises RequestError."""
    for profile in _selected_profiles(target, request.action_profile_id, request.group_id):
        if not profile.has_selector:
            continue
        for group_id, member_ids in target.switch.groups(profile.name).items():
            if request.group_id in (0, group_id):
                group = p4r.ActionProfileGroup(
                    action_profile_id=profile.id,
                    group_id=group_id,
                    max_size=target.notes.group_max_sizes.get((profile.name, group_id), 0),
                )
                watched = target.switch.watch_ports(profile.name, group_id)
                for member_id, weight in Counter(member_ids).items():
                    watch_port = encode_value(watched[member_id]) if member_id in watched else None
                    group.members.add(member_id=member_id, weight=weight, watch_port=watch_port)
                yield group


def _decode_member_action(target: Target, profile: Profile, message: p4r.ActionProfileMember) -> ActionCall:
    if not message.HasField("action"):
        raise invalid_argument(f"member {message.member_id} of {profile.name} needs an action")
    if not profile.table_ids:
        raise invalid_argument(f"action profile {profile.name} implements no table and so has no actions")
    # Tables that share a profile have the same actions.
    return decode_action(target.schema, target.schema.table(profile.table_ids[0]), message.action)


def _decode_members(target: Target, profile: Profile, message: p4r.ActionProfileGroup) -> _Members:
    known = target.switch.members(profile.name)
    weights: dict[int, int] = {}
    watch_ports: dict[int, int] = {}
    for member in message.members:
        where = f"group {message.group_id} of {profile.name}, member {member.member_id}"
        if member.member_id in weights:
            raise invalid_argument(f"{where}: given twice; use its weight")
        if member.weight <= 0:
            raise invalid_argument(f"{where}: the weight must be above 0, not {member.weight}")
        if profile.max_weight and member.weight > profile.max_weight:
            raise invalid_argument(f"{where}: the weight is at most {profile.max_weight}, not {member.weight}")
        if member.member_id not in known:
            raise not_found(f"{where}: there is no such member")
        watch_port = decode_watch_port(target, member, where)
        if watch_port is not None:
            watch_ports[member.member_id] = watch_port
        weights[member.member_id] = member.weight
    what = "members:" if profile.counts_members else "weights of"
    size, max_size = profile.group_size(weights.values()), message.max_size or LARGEST_GROUP_SIZE
    if size > max_size:
        raise RequestError(
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            f"group {message.group_id} of {profile.name}: {what} {size} are more than its max_size of {max_size}",
        )
    if sum(weights.values()) > LARGEST_GROUP_SIZE:
        raise RequestError(
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            f"group {message.group_id} of {profile.name}: weights of more than {LARGEST_GROUP_SIZE}",
        )
    ids = tuple(member_id for member_id, weight in weights.items() for _ in range(weight))
    return _Members(ids, watch_ports)


def _check_max_size(profile: Profile, max_size: int) -> None:
    if max_size < 0 or (profile.max_group_size and not 0 < max_size <= profile.max_group_size):
        allowed = f"within 1 to {profile.max_group_size}" if profile.max_group_size else "0 or more"
        raise invalid_argument(f"action profile {profile.name}: a group's max_size is {allowed}, not {max_size}")
    if max_size > LARGEST_GROUP_SIZE:
        raise RequestError(
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            f"action profile {profile.name}: a group's max_size is at most {LARGEST_GROUP_SIZE}, not {max_size}",
        )


def _refuse_beside_sets(target: Target, profile: Profile) -> None:
    # All entries of a profile have the same style, so the first one decides.
    if isinstance(next(_references(target, profile), None), ActionSet):
        raise invalid_argument(f"action profile {profile.name}: its entries have action sets, not members and groups")


def _refuse_member_in_use(target: Target, profile: Profile, member_id: int) -> None:
    if any(member_id in member_ids for member_ids in target.switch.groups(profile.name).values()):
        raise failed_precondition(f"member {member_id} of {profile.name} is in a group")
    if MemberReference(member_id) in _references(target, profile):
        raise failed_precondition(f"member {member_id} of {profile.name} is used by a table entry")


def _references(target: Target, profile: Profile) -> Iterator[EntryAction]:
    for table_id in profile.table_ids:
        for _, action in target.switch.entries(target.schema.table(table_id).name):
            yield action


def _selected_profiles(target: Target, profile_id: int, object_id: int) -> list[Profile]:
    if profile_id:
        return [target.schema.profile(profile_id)]
    if object_id:
        raise invalid_argument("a read of all action profiles (id 0) takes no other filter")
    return list(target.schema.profiles.values())
