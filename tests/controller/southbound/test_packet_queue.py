"""The frames that wait for the controller are bounded: those of a port, and those of a switch."""

from controller.southbound.packet_queue import MAX_WAITING_BYTES_PER_SWITCH, MAX_WAITING_PER_PORT, PacketQueue

_FRAME = bytes(9_000)


def test_a_switch_of_many_ports_that_floods_leaves_room_to_others() -> None:
    queue = PacketQueue()
    woken: list[bool] = []
    queue.listen(lambda: woken.append(True))
    sent = 0
    for port in range(1, 4_000):
        for _ in range(MAX_WAITING_PER_PORT):
            queue.keep("t0", port, _FRAME)
            sent += 1
    queue.keep("t1", 1, _FRAME)
    taken = queue.take(1 << 20)
    assert [each.switch for each in taken].count("t1") == 1
    kept = len(taken) - 1
    assert MAX_WAITING_BYTES_PER_SWITCH * 0.9 < kept * len(_FRAME) <= MAX_WAITING_BYTES_PER_SWITCH
    assert queue.dropped == {"t0": sent - kept}
    assert woken == [True]


def test_what_is_taken_makes_room() -> None:
    queue = PacketQueue()
    queue.listen(lambda: None)
    kept = 0
    while not queue.dropped:
        queue.keep("t0", 1 + kept // MAX_WAITING_PER_PORT, _FRAME)
        kept += 1
    assert len(queue.take(10)) == 10
    before = queue.dropped["t0"]
    for number in range(10):
        queue.keep("t0", 10_000 + number, _FRAME)
    assert queue.dropped["t0"] == before
    queue.keep("t0", 20_000, _FRAME)
    assert queue.dropped["t0"] == before + 1
