"""ActionProfileMember and ActionProfileGroup (P4Runtime specification, section 9.2)."""

from collections import Counter
from collections.abc import Iterator

import grpc
from finsy.proto import p4r

from emulator.entries import ActionCall, EntryAction, GroupReference, MemberReference
from emulator.p4runtime.errors import RequestError, failed_precondition, invalid_argument, not_found, unimplemented
from emulator.p4runtime.schema import Profile
from emulator.p4runtime.target import Target
from emulator.p4runtime.translate import decode_action, encode_action

# The largest group where neither the program nor the client sets a limit.
LARGEST_GROUP_SIZE = 1 << 16


def write_member(target: Target, kind: p4r.Update.Type.ValueType, message: p4r.ActionProfileMember) -> None:
    """Insert, modify or delete a member. Raises RequestError or SwitchError and has then changed nothing."""
    profile = target.schema.profile(message.action_profile_id)
    if message.member_id == 0:
        raise invalid_argument(f"action profile {profile.name}: a member's id cannot be 0")
    if kind == p4r.Update.DELETE:
        _refuse_member_in_use(target, profile, message.member_id)
        target.switch.delete_member(profile.name, message.member_id)
        return
    action = _decode_member_action(target, profile, message)
    if kind == p4r.Update.INSERT:
        target.switch.insert_member(profile.name, message.member_id, action)
    else:
        target.switch.modify_member(profile.name, message.member_id, action)


def write_group(target: Target, kind: p4r.Update.Type.ValueType, message: p4r.ActionProfileGroup) -> None:
    """Insert, modify or delete a group; a member of weight w is in it w times.

    Raises RequestError or SwitchError and has then changed nothing.
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
    _check_max_size(profile, message.max_size)
    members = _decode_members(target, profile, message)
    if kind == p4r.Update.INSERT:
        target.switch.insert_group(*where, members, message.max_size)
        target.notes.group_max_sizes[where] = message.max_size
        return
    max_size = target.notes.group_max_sizes.get(where, message.max_size)
    if message.max_size != max_size:
        raise invalid_argument(f"group {message.group_id}: max_size is {max_size} and cannot become {message.max_size}")
    target.switch.modify_group(*where, members)


def read_members(target: Target, request: p4r.ActionProfileMember) -> Iterator[p4r.ActionProfileMember]:
    """The members that a request selects; an id of 0 is a wildcard. Raises RequestError."""
    for profile in _selected_profiles(target, request.action_profile_id, request.member_id):
        for member_id, action in target.switch.members(profile.name).items():
            if request.member_id in (0, member_id):
                yield p4r.ActionProfileMember(
                    action_profile_id=profile.id,
                    member_id=member_id,
                    action=encode_action(target.schema, action),
                )


def read_groups(target: Target, request: p4r.ActionProfileGroup) -> Iterator[p4r.ActionProfileGroup]:
    """The groups that a request selects; an id of 0 is a wildcard. Raises RequestError."""
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
                for member_id, weight in Counter(member_ids).items():
                    group.members.add(member_id=member_id, weight=weight)
                yield group


def require_reference(target: Target, profile: Profile, action: EntryAction) -> None:
    """Raises RequestError where a table entry would refer to a member or a group that is not there."""
    match action:
        case MemberReference(0) | GroupReference(0):
            raise invalid_argument(f"action profile {profile.name}: the id of a member or a group cannot be 0")
        case MemberReference(member_id) if member_id not in target.switch.members(profile.name):
            raise not_found(f"action profile {profile.name} has no member {member_id}")
        case GroupReference(group_id) if group_id not in target.switch.groups(profile.name):
            raise not_found(f"action profile {profile.name} has no group {group_id}")
        case _:
            pass


def _decode_member_action(target: Target, profile: Profile, message: p4r.ActionProfileMember) -> ActionCall:
    if not message.HasField("action"):
        raise invalid_argument(f"member {message.member_id} of {profile.name} needs an action")
    if not profile.table_ids:
        raise invalid_argument(f"action profile {profile.name} implements no table and so has no actions")
    # Tables that share a profile have the same actions.
    return decode_action(target.schema, target.schema.table(profile.table_ids[0]), message.action)


def _decode_members(target: Target, profile: Profile, message: p4r.ActionProfileGroup) -> tuple[int, ...]:
    known = target.switch.members(profile.name)
    weights: dict[int, int] = {}
    for member in message.members:
        where = f"group {message.group_id} of {profile.name}, member {member.member_id}"
        if member.member_id in weights:
            raise invalid_argument(f"{where}: given twice; use its weight")
        if member.weight <= 0:
            raise invalid_argument(f"{where}: the weight must be above 0, not {member.weight}")
        if member.watch_port or member.watch:
            raise unimplemented(f"{where}: watch_port is not supported")
        if member.member_id not in known:
            raise not_found(f"{where}: there is no such member")
        weights[member.member_id] = member.weight
    size, max_size = sum(weights.values()), message.max_size or LARGEST_GROUP_SIZE
    if size > max_size:
        raise RequestError(
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            f"group {message.group_id} of {profile.name}: weights of {size} are more than its max_size of {max_size}",
        )
    return tuple(member_id for member_id, weight in weights.items() for _ in range(weight))


def _check_max_size(profile: Profile, max_size: int) -> None:
    if max_size < 0 or (profile.max_group_size and not 0 < max_size <= profile.max_group_size):
        allowed = f"within 1 to {profile.max_group_size}" if profile.max_group_size else "0 or more"
        raise invalid_argument(f"action profile {profile.name}: a group's max_size is {allowed}, not {max_size}")
    if max_size > LARGEST_GROUP_SIZE:
        raise RequestError(
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            f"action profile {profile.name}: a group's max_size is at most {LARGEST_GROUP_SIZE}, not {max_size}",
        )


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
