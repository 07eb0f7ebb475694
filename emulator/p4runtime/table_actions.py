"""Actions of table entries: an action, or a selector's choices (P4Runtime specification, sections 9.1.2, 9.2)."""

import grpc
from finsy.proto import p4r

from emulator.entries import ActionCall, ActionSet, EntryAction, GroupReference, MemberReference, WeightedAction
from emulator.p4runtime.action_types import Profile
from emulator.p4runtime.bytestrings import encode_value
from emulator.p4runtime.errors import RequestError, invalid_argument, not_found, unimplemented
from emulator.p4runtime.schema import Schema
from emulator.p4runtime.table_types import Table
from emulator.p4runtime.target import Target
from emulator.p4runtime.translate import decode_action, encode_action
from emulator.p4runtime.watch_ports import decode_watch_port

# Largest group if neither the program nor the client sets a limit.
LARGEST_GROUP_SIZE = 1 << 16

_Set = p4r.ActionProfileActionSet
# All selectors hash and count weights, so requesting this explicitly changes nothing.
_SELECTION_MODES = (_Set.DEFAULT_MODE_DETERMINED_BY_ACTION_SELECTOR, _Set.HASH)


def decode_table_action(target: Target, table: Table, message: p4r.TableAction) -> EntryAction:
    """Decode an entry's action: an action of a direct table; a member, group or action set of an indirect one.

    Raises RequestError as ``decode_action`` does; NOT_FOUND for an unknown member or group.
    """
    kind = message.WhichOneof("type")
    match kind, table.profile:
        case None, _:
            raise invalid_argument(f"table {table.name}: the type of the entry's action is not set")
        case "action", None:
            return decode_action(target.schema, table, message.action)
        case "action_profile_member_id", profile if profile is not None:
            return _member(target, profile, message.action_profile_member_id)
        case "action_profile_group_id", profile if profile is not None and profile.has_selector:
            return _group(target, profile, message.action_profile_group_id)
        case "action_profile_action_set", profile if profile is not None and profile.has_selector:
            return _decode_set(target, table, profile, message.action_profile_action_set)
        case _:
            raise invalid_argument(f"table {table.name}: its entries do not take an {kind}")


def encode_table_action(schema: Schema, action: EntryAction) -> p4r.TableAction:
    """Encode an entry's action; watch ports become byte strings, however they were written."""
    match action:
        case ActionCall():
            return p4r.TableAction(action=encode_action(schema, action))
        case MemberReference(member_id):
            return p4r.TableAction(action_profile_member_id=member_id)
        case GroupReference(group_id):
            return p4r.TableAction(action_profile_group_id=group_id)
        case ActionSet(actions):
            message = p4r.TableAction()
            message.action_profile_action_set.SetInParent()
            for weighted in actions:
                message.action_profile_action_set.action_profile_actions.add(
                    action=encode_action(schema, weighted.call),
                    weight=weighted.weight,
                    watch_port=None if weighted.watch_port is None else encode_value(weighted.watch_port),
                )
            return message


def _member(target: Target, profile: Profile, member_id: int) -> MemberReference:
    if member_id == 0:
        raise invalid_argument(f"action profile {profile.name}: a member's id cannot be 0")
    if member_id not in target.switch.members(profile.name):
        raise not_found(f"action profile {profile.name} has no member {member_id}")
    return MemberReference(member_id)


def _group(target: Target, profile: Profile, group_id: int) -> GroupReference:
    if group_id == 0:
        raise invalid_argument(f"action profile {profile.name}: a group's id cannot be 0")
    if group_id not in target.switch.groups(profile.name):
        raise not_found(f"action profile {profile.name} has no group {group_id}")
    return GroupReference(group_id)


def _decode_set(target: Target, table: Table, profile: Profile, message: p4r.ActionProfileActionSet) -> ActionSet:
    where = f"table {table.name}, action set"
    if message.action_selection_mode not in _SELECTION_MODES:
        raise unimplemented(f"{where}: selection mode {message.action_selection_mode} is not supported, only HASH")
    own = _Set.SUM_OF_MEMBERS if profile.counts_members else _Set.SUM_OF_WEIGHTS
    if message.size_semantics not in (_Set.DEFAULT_SIZE_DETERMINED_BY_ACTION_SELECTOR, own):
        name = _Set.SizeSemantics.Name(own)
        raise unimplemented(f"{where}: size semantics {message.size_semantics} is not supported, only {name}")
    actions = []
    for number, item in enumerate(message.action_profile_actions):
        if item.weight <= 0:
            raise invalid_argument(f"{where}, action {number}: the weight must be above 0, not {item.weight}")
        if profile.max_weight and item.weight > profile.max_weight:
            raise invalid_argument(f"{where}, action {number}: the weight is at most {profile.max_weight}")
        watch_port = decode_watch_port(target, item, f"{where}, action {number}")
        actions.append(WeightedAction(decode_action(target.schema, table, item.action), item.weight, watch_port))
    weights = [action.weight for action in actions]
    size, what = profile.group_size(weights), "members:" if profile.counts_members else "weights of"
    if profile.max_group_size and size > profile.max_group_size:
        raise invalid_argument(f"{where}: {what} {size} are more than the {profile.max_group_size} of a group")
    if sum(weights) > LARGEST_GROUP_SIZE:
        raise RequestError(
            grpc.StatusCode.RESOURCE_EXHAUSTED, f"{where}: weights of {sum(weights)} are more than {LARGEST_GROUP_SIZE}"
        )
    return ActionSet(tuple(actions))
