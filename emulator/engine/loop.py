"""Source of the event loop.

It becomes part of the source that is generated for a program: the program's ``receive`` and ``transmit`` are compiled
into the loop. Lines between ``# replication`` and ``# end`` appear only in programs that copy packets, those between
``# halts`` and ``# end`` only where an action or the parser may halt a packet, those between ``# learns`` and ``# end``
only where they ask for digests, those between ``# truncates`` and ``# end`` only where they truncate packets, those
between ``# ages`` and ``# end`` only where entries of tables age, and those between ``# wires`` and ``# end`` only
where real interfaces are attached.
"""

import re

from emulator.engine.replication import REPLICATION_SOURCE

_SECTIONS = "replication|halts|learns|truncates|ages|wires"
_SECTION = re.compile(rf"^ *# ({_SECTIONS})\n(.*?)^ *# end\n", re.MULTILINE | re.DOTALL)


SHORTEST_SLEEP_NS, BUSY_SLEEP_NS, SHORTEST_WAIT_NS, LONGEST_WAIT_NS = 1_000, 200_000, 100_000, 1_000_000_000
# So many frames within a time make a busy fabric: frames wait for others there, because every round costs as much as
# several frames. In any other one each frame goes on at once.
BUSY_FRAMES, BUSY_WITHIN_PS = 16, 1_000_000_000
ROUNDS_A_NAP, NAP_NS = 32, 50_000  # a shorter sleep may be over before the process has left its processor
STEP_PS = 5_000_000_000  # of a round: somebody may want a pause although packets circle in the fabric


def loop_source(*, replicates: bool, halts: bool, learns: bool, truncates: bool, ages: bool, is_wired: bool) -> str:
    """Return the source of the loop for a program."""
    wanted = {
        "replication": replicates,
        "halts": halts,
        "learns": learns,
        "truncates": truncates,
        "ages": ages,
        "wires": is_wired,
    }
    parts = [_TRUNCATE_SOURCE] * truncates + [REPLICATION_SOURCE] * replicates + [_LEARN_SOURCE] * learns
    parts += [_LOOP_SOURCE] + [_SERVE_SOURCE] * is_wired
    return "\n".join(_SECTION.sub(lambda found: found[2] if wanted[found[1]] else "", part) for part in parts)


_TRUNCATE_SOURCE = '''
def truncate(state, packet):
    """Cut off what is longer than an action has allowed, unless the packet recirculates.

    A packet of a host that has lost payload is none of its flow any more.
    """
    packets, longest = state.packets, np.int64(state.phv[CUT_WORD]) - 1
    # replication
    if state.phv[RECIRCULATE_WORD]:
        return
    # end
    if 0 <= longest < packets[packet, PACKET_LENGTH]:
        packets[packet, PACKET_LENGTH] = longest
        packets[packet, PACKET_STORED] = min(packets[packet, PACKET_STORED], longest)
        packets[packet, PACKET_FLOW] = NONE
'''

_LEARN_SOURCE = '''
def learn(state, switch):
    """Capture the digest that ingress has asked for, on the switch's link to nowhere."""
    # wires
    if state.scalars[CAPTURES] + 1 == len(state.captures):
        state.wires[UNHEARD] += 1
        return
    # end
    packet = take_packet(state)
    size = write_digest(state.phv, state.octets, U(octets_of(state, packet)))
    state.phv[DIGEST_WORD] = U(0)
    state.packets[packet, PACKET_LENGTH] = state.packets[packet, PACKET_STORED] = size
    state.packets[packet, PACKET_FLOW] = NONE
    deliver(state, state.scalars[FIRST_NOWHERE] + switch, packet)
'''

_LOOP_SOURCE = '''
def forward(state, memory, switch, packet, port):
    """A packet has passed ingress: it joins a queue of its egress port."""
    # learns
    if state.phv[DIGEST_WORD]:
        learn(state, switch)
    # end
    # halts
    if port == HALTED:
        state.drops[switch, TOO_MANY_REPEATS + np.int64(state.phv[HALT_WORD]) - 1] += 1
        release_packet(state, packet)
        return
    # end
    # replication
    if after_ingress(state, memory, switch, packet):
        return
    # end
    egress_link = state.port_links[switch, port]
    if egress_link == NONE:
        state.drops[switch, BY_PROGRAM] += 1
        release_packet(state, packet)
    else:
        state.packets[packet, PACKET_PORT] = port
        store(state.phv, state.words, U(row_of(state, packet)))
        enqueue_in_switch(state, egress_link, packet, np.int64(state.phv[PRIORITY_WORD]))


def arrive(state, memory, link, packet):
    """A packet has reached the end of a link: a switch's ingress, or a host."""
    if state.links[link, LINK_UP] == 0:
        drop(state, LINK_DOWN, link, NONE, packet)
        return
    switch = state.links[link, LINK_DESTINATION_SWITCH]
    if switch == NONE:
        if state.links[link, LINK_ADDRESS] == NOWHERE:
            drop(state, NO_PORT, link, NONE, packet)
            return
        # wires
        if state.links[link, LINK_WIRE] != 0:
            send_frame(state, link, packet)
            return
        if state.links[link, LINK_ADDRESS] != CONTROL_PLANE or state.scalars[CAPTURES] + 1 == len(state.captures):
            state.wires[UNHEARD if state.links[link, LINK_ADDRESS] == CONTROL_PLANE else UNWIRED] += 1
            release_packet(state, packet)
            return
        # end
        deliver(state, link, packet)
        return
    record(state, link, 1, packet)
    scalars = state.scalars
    if state.programs[switch] == 0:
        state.drops[switch, NO_PIPELINE] += 1
        release_packet(state, packet)
        return
    # wires
    refill(state, packet)
    # end
    # ages
    state.phv[PS_WORD] = U(scalars[NOW_PS])
    # end
    # replication
    if state.links[link, LINK_DESTINATION_PORT] == NONE:
        load(state.phv, state.words, U(row_of(state, packet)))
        port = receive_again(
            state.phv, state.octets, U(octets_of(state, packet)), state.packets[packet, PACKET_LENGTH],
            scalars[NOW_PS] // 1_000_000, memory, U(state.blocks[switch]),
        )
        forward(state, memory, switch, packet, port)
        return
    # end
    port = receive(
        state.phv, state.octets, U(octets_of(state, packet)), state.packets[packet, PACKET_LENGTH],
        state.links[link, LINK_DESTINATION_PORT], scalars[NOW_PS] // 1_000_000, memory,
        U(state.blocks[switch]),
    )
    forward(state, memory, switch, packet, port)


def start(state, memory, link):
    """Send the most urgent packet that waits for an idle link."""
    scalars, links, packets = state.scalars, state.links, state.packets
    while True:
        level = most_urgent_level(state, link)
        if level == NONE:
            links[link, LINK_WAITED_FOR] = 0
            links[link, LINK_STARTS_PS] = NEVER_PS
            schedule_link(state, link)
            return
        packet = dequeue(state, link, level)
        switch = links[link, LINK_SOURCE_SWITCH]
        if switch == NONE:
            break
        load(state.phv, state.words, U(row_of(state, packet)))
        port = links[link, LINK_SOURCE_PORT]
        if port == NONE:
            port = packets[packet, PACKET_PORT]
        payload = np.int64(state.phv[PAYLOAD_WORD])
        # wires
        if payload > packets[packet, PACKET_STORED]:  # the program has parsed more than a packet holds of a frame
            state.drops[switch, TOO_LONG] += 1
            release_packet(state, packet)
            continue
        # end
        # ages
        state.phv[PS_WORD] = U(scalars[NOW_PS])
        # end
        size = transmit(
            state.phv, state.octets, U(octets_of(state, packet)), packets[packet, PACKET_STORED],
            port, packets[packet, PACKET_ENQUEUED_PS] // 1_000_000,
            scalars[NOW_PS] // 1_000_000, packets[packet, PACKET_DEPTH],
            links[link, LINK_PACKETS + QUEUE_COLUMNS * level],
            memory, U(state.blocks[switch]),
        )
        # replication
        size = after_egress(state, memory, switch, packet)
        # end
        scalars[HOPS] += 1
        if size >= 0:
            packets[packet, PACKET_LENGTH] += size - payload
            packets[packet, PACKET_STORED] += size - payload
            break
        reason = BY_PROGRAM if size == DROPPED else TOO_LONG
        # halts
        if size == HALTED:
            reason = TOO_MANY_REPEATS + np.int64(state.phv[HALT_WORD]) - 1
        # end
        state.drops[switch, reason] += 1
        release_packet(state, packet)
        # replication
        links[link, LINK_STARTS_PS] = NEVER_PS
        schedule_link(state, link)
        kick(state, link)
        return
        # end
    # replication
    if switch != NONE:
        shorten(state, packet)
    # end
    # truncates
    if switch != NONE:
        truncate(state, packet)
    # end
    length = packets[packet, PACKET_LENGTH]
    trace(state, STARTED, link, level, packet)
    links[link, LINK_SENT_BYTES + QUEUE_COLUMNS * level] += length
    end_ps = scalars[NOW_PS] + np.int64(length * state.ps_per_byte[link] + 0.5)
    links[link, LINK_FREE_PS] = end_ps
    if switch == NONE:
        leave_nic(state, packet)
    is_waited_for = links[link, LINK_OCCUPIED] != 0
    links[link, LINK_WAITED_FOR] = is_waited_for
    links[link, LINK_STARTS_PS] = end_ps if is_waited_for else NEVER_PS
    # replication
    if switch != NONE and recirculate(state, switch, packet, end_ps):
        schedule_link(state, link)
        return
    # end
    if switch != NONE:
        record(state, link, 0, packet)
    put_on_link(state, link, packet, end_ps + links[link, LINK_DELAY_PS])


def needs_another_program(state, switch):
    """Tell whether a switch runs another program, and then ask for the loop of that one."""
    program = state.programs[switch]
    if program == state.scalars[PROGRAM] or program == 0:
        return False
    state.scalars[WANTED_PROGRAM] = program
    return True


def run(state, memory, until_ps):
    """Process events up to and including a time.

    Earlier back where a transfer is complete, an array is full, or the next event is one of another program.
    """
    scalars, calendar, timers = state.scalars, state.calendar, state.timers
    last_key = begin(state, until_ps)
    if last_key == LEAVES:
        return
    while True:
        while scalars[KICKED] > 0 and scalars[FREE_PACKETS] >= RESERVE:
            link = state.kicks[scalars[KICKED] - 1]
            if needs_another_program(state, state.links[link, LINK_SOURCE_SWITCH]):
                return
            scalars[KICKED] -= 1
            start(state, memory, link)
        if (
            scalars[COMPLETIONS] > 0
            or scalars[FREE_PACKETS] < RESERVE
            or scalars[CAPTURES] + 1 > len(state.captures)
            or (len(state.trace) > 0 and scalars[TRACED] + RESERVE > len(state.trace))
            or (len(state.records) > 0 and scalars[RECORDED] + RESERVE > len(state.records))
        ):
            if not goes_on(state, until_ps, True):
                return
            continue
        key, place = calendar[FIRST_KEY], calendar[FIRST_PLACE]
        timer_key = timers[FIRST_KEY]
        if min(key, timer_key) > last_key and not is_in_step(state, key, place):
            if not goes_on(state, until_ps, False):
                return
            last_key = state.border[LAST_KEY]
            continue
        scalars[NOW_PS] = min(key, timer_key) >> 1
        if timer_key < key:
            time_out(state, timers[FIRST_PLACE])
        elif key & 1:
            kick(state, place)
        elif needs_another_program(state, state.links[place, LINK_DESTINATION_SWITCH]):
            return
        else:
            arrive(state, memory, place, take_from_link(state, place))
'''

_SERVE_SOURCE = '''
def arm_all(state):
    """Take packets for the first frames."""
    for row in range(BATCH):
        arm(state, row)


def serve(state, memory):
    """Pass frames as the machine's clock goes on, until Python wants the engine to stop.

    Where it wants a pause, packets wait in the kernel meanwhile. Every round sleeps, and some for long enough, so that
    a process with a real-time priority leaves its processor to others.
    """
    scalars, wires = state.scalars, state.wires
    counted_from_ps, counted, is_busy = wall_ps(state), wires[RECEIVED], False
    while True:
        request = wires[REQUEST]
        while request > 0:
            if wires[PAUSED] != request:
                wires[PAUSED] = request
                tell(state)
            wait(state, np.int64(-1), np.int64(1))
            request = wires[REQUEST]
        if request == STOP:
            return
        scalars[IDLE_UNTIL_PS] = NONE
        first_ps = max(scalars[NOW_PS], min(state.calendar[FIRST_KEY], state.timers[FIRST_KEY]) >> 1)
        now_ps = wall_ps(state)
        if now_ps > counted_from_ps + BUSY_WITHIN_PS:
            frames = (wires[RECEIVED] - counted) * BUSY_WITHIN_PS
            is_busy = frames > BUSY_FRAMES * (now_ps - counted_from_ps)
            counted_from_ps, counted = now_ps, wires[RECEIVED]
        run_programs(state, memory, min(max(now_ps, scalars[NOW_PS]), first_ps + STEP_PS, NEVER_PS - 1))
        flush_frames(state)
        if (scalars[CAPTURES] > 0 or 2 * scalars[RECORDED] > len(state.records)) and wires[HAS_TOLD] == 0:
            wires[HAS_TOLD] = 1
            tell(state)
        received = receive_frames(state)
        wires[ROUNDS] += 1
        if wires[ROUNDS] % ROUNDS_A_NAP == 0:
            sleep(state, NAP_NS)
        elif received == BATCH:
            sleep(state, SHORTEST_SLEEP_NS)
        elif is_busy:
            sleep(state, BUSY_SLEEP_NS)
        elif received > 0:
            sleep(state, SHORTEST_SLEEP_NS)
        else:
            next_ps = min(state.calendar[FIRST_KEY], state.timers[FIRST_KEY]) >> 1
            wait_ns = min((next_ps - wall_ps(state)) // 1000, LONGEST_WAIT_NS)
            if wait_ns > SHORTEST_WAIT_NS:
                wait(state, wait_ns, np.int64(2 if has_memory_for_frames(state) else 1))
            else:
                sleep(state, max(wait_ns, SHORTEST_SLEEP_NS))
'''
