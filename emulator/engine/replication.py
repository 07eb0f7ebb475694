"""Source of the part of the event loop that copies packets and sends them through a switch again.

Clones, multicast, resubmission and recirculation behave as in BMv2's simple_switch. This source is compiled with the
event loop of programs that use any of them; the names of words are those of the program.
"""

import numpy as np

INGRESS_CLONE, EGRESS_CLONE, RECIRCULATED, REPLICATED, RESUBMITTED = 1, 2, 4, 5, 6
SESSION = np.uint64(0x7FFF)

REPLICATION_SOURCE = '''

def replicate(state, memory, switch, packet, place):
    """Put a copy of a packet into a queue for every replica of a group or session, and release it."""
    rows = state.words
    # wires
    if not has_memory_for_copies(state):
        release_packet(state, packet)
        return
    # end
    for number in range(np.int64(memory[place + REPLICAS_COUNT])):
        other = copy_packet(state, packet)
        # wires
        copy_payload(state, packet, other)
        # end
        row = row_of(state, other)
        ask_nothing(rows, row)
        at = place + REPLICAS + number * REPLICA_WORDS
        rows[row + EGRESS_RID_WORD] = memory[at + 1]
        link = state.port_links[switch, np.int64(memory[at])]
        state.packets[other, PACKET_PORT] = np.int64(memory[at])
        enqueue_in_switch(state, link, other, np.int64(rows[row + PRIORITY_WORD]))
    release_packet(state, packet)


def clone(state, memory, switch, packet, at_ingress):
    """Replicate a stored packet as the session says that it has asked for; nothing happens where there is none."""
    phv, rows = state.phv, state.words
    row = row_of(state, packet)
    session, fields = rows[row + CLONE_SESSION_WORD] & SESSION, np.int64(rows[row + CLONE_FIELDS_WORD])
    place = numbered_place(memory, memory[state.blocks[switch] + SESSIONS], session)
    if place == 0:
        return
    if rows[row + PASSES_WORD] >= MAX_PASSES:
        state.drops[switch, TOO_MANY_PASSES] += 1
        return
    other = copy_packet(state, packet)
    # wires
    copy_payload(state, packet, other)
    # end
    to = row_of(state, other)
    if at_ingress:
        length, port = state.packets[other, PACKET_LENGTH], rows[row + ARRIVAL_PORT_WORD]
        block = U(state.blocks[switch])
        reparse(phv, state.octets, U(octets_of(state, other)), length, port, memory, block)
        store(phv, rows, U(to))
    renew(rows, to, row, fields, INGRESS_CLONE if at_ingress else EGRESS_CLONE)
    rows[to + PASSES_WORD] += U(1)
    if memory[place + REPLICAS_LONGEST]:
        rows[to + LONGEST_WORD] = memory[place + REPLICAS_LONGEST]
    if memory[place + REPLICAS_LEVEL]:
        rows[to + PRIORITY_WORD] = memory[place + REPLICAS_LEVEL] - U(1)
    replicate(state, memory, switch, other, place)


def pass_again(state, switch, packet, fields, instance, time_ps):
    """Let a stored packet reach ingress once more, with the metadata of a list and no other."""
    rows, row = state.words, row_of(state, packet)
    if rows[row + PASSES_WORD] >= MAX_PASSES:
        state.drops[switch, TOO_MANY_PASSES] += 1
    else:
        other = copy_packet(state, packet)
        # wires
        copy_payload(state, packet, other)
        # end
        to = row_of(state, other)
        renew(rows, to, row, fields, instance)
        rows[to + PACKET_LENGTH_WORD] = U(state.packets[packet, PACKET_LENGTH])
        rows[to + PASSES_WORD] += U(1)
        put_on_link(state, state.scalars[FIRST_WAY_BACK] + switch, other, time_ps)
    release_packet(state, packet)


def after_ingress(state, memory, switch, packet):
    """Do what ingress has asked for; True where that was the end of the packet itself."""
    phv, rows, scalars, row = state.phv, state.words, state.scalars, row_of(state, packet)
    store(phv, rows, U(row))
    if phv[CLONE_SESSION_WORD]:
        clone(state, memory, switch, packet, True)
        load(phv, rows, U(row))
        phv[CLONE_SESSION_WORD] = phv[CLONE_FIELDS_WORD] = U(0)
        rows[row + CLONE_SESSION_WORD] = rows[row + CLONE_FIELDS_WORD] = U(0)
    if phv[RESUBMIT_WORD]:
        pass_again(state, switch, packet, np.int64(phv[RESUBMIT_WORD]), RESUBMITTED, scalars[NOW_PS])
        return True
    group = phv[MCAST_GRP_WORD]
    if group == 0:
        phv[INSTANCE_TYPE_WORD] = U(0)
        return False
    rows[row + INSTANCE_TYPE_WORD] = U(REPLICATED)
    place = numbered_place(memory, memory[state.blocks[switch] + GROUPS], group)
    if place == 0 or memory[place + REPLICAS_COUNT] == 0:
        state.drops[switch, NO_GROUP] += 1
        release_packet(state, packet)
    else:
        replicate(state, memory, switch, packet, place)
    return True


def after_egress(state, memory, switch, packet):
    """Clone a packet where egress has asked for it, and write its headers; gives what ``finish`` does."""
    phv, rows, row = state.phv, state.words, row_of(state, packet)
    # halts
    if phv[HALT_WORD]:
        return HALTED
    # end
    store(phv, rows, U(row))
    if phv[CLONE_SESSION_WORD]:
        clone(state, memory, switch, packet, False)
    return finish(phv, state.octets, U(octets_of(state, packet)), state.packets[packet, PACKET_STORED])


def shorten(state, packet):
    """Cut off what is longer than the packet's session allows."""
    longest = np.int64(state.phv[LONGEST_WORD])
    if longest:
        state.packets[packet, PACKET_LENGTH] = min(state.packets[packet, PACKET_LENGTH], longest)
        state.packets[packet, PACKET_STORED] = min(state.packets[packet, PACKET_STORED], longest)


def recirculate(state, switch, packet, time_ps):
    """Let a packet that has asked for it reach ingress once more, instead of the other end of the link."""
    fields = np.int64(state.phv[RECIRCULATE_WORD])
    if fields:
        pass_again(state, switch, packet, fields, RECIRCULATED, time_ps)
    return fields != 0
'''
