"""What p4testgen cannot foretell: checksums, counters, and registers and meters over several packets."""

import struct
from random import Random

import pytest

from tests.p4src.packets import ethernet, internet_checksum
from tests.p4src.tna.externs import CRC16, CRC32, GREEN, RED, Crc, Meter, Register, word_sum
from tests.p4src.tna.program import RunningProgram
from tests.p4src.tna.stored import path_of, translated
from tests.p4src.tna.switch import FCS_BYTES, Conditions, Switch

PORT = 3
WRONG = 0x0BAD
CHECK = b"123456789"


def started(name: str) -> RunningProgram:
    return translated(path_of(name)).start()


def answer(program: RunningProgram, payload: bytes) -> bytes:
    """What becomes of the bytes behind Ethernet's header."""
    sent = Switch(program).process(ethernet(payload), PORT, Conditions())
    assert sent is not None
    assert sent.port == PORT
    return sent.octets[12:]


def test_a_header_checksum_is_verified_and_computed_anew() -> None:
    random, program = Random(1), started("checksums")
    for error in (0, 0, 0, 1, 0x8000):
        first, second, third = random.getrandbits(8), random.getrandbits(8), random.getrandbits(16)
        fields = struct.pack("!BBH", first, second, third)
        header = fields + struct.pack("!HH", internet_checksum(fields) ^ error, 0)
        ether_type, *_, checksum, _ = struct.unpack("!HBBHHH", answer(program, header))
        assert ether_type == (WRONG if error else 0x0800)
        assert checksum == internet_checksum(struct.pack("!BBH", first + 1 & 0xFF, second, third))


def test_a_checksum_over_an_unread_payload_is_brought_up_to_date() -> None:
    random, program = Random(2), started("checksums")
    for _ in range(300):
        first, second = random.getrandbits(8), random.getrandbits(8)
        payload = random.randbytes(2 * random.randrange(20))
        checksum = internet_checksum(bytes([first, second]) + payload) or 0xFFFF
        octets = answer(program, struct.pack("!BBHHH", first, second, 0, 0, checksum) + payload)
        expected = internet_checksum(bytes([first + 1 & 0xFF, second]) + payload) or 0xFFFF
        assert octets[8:] == struct.pack("!H", expected) + payload


def test_an_error_in_a_checksum_stays_one() -> None:
    program = started("checksums")
    checksum = internet_checksum(b"\1\2" + b"data") ^ 0x10
    octets = answer(program, struct.pack("!BBHHH", 1, 2, 0, 0, checksum) + b"data")
    assert octets[8:10] != struct.pack("!H", internet_checksum(b"\2\2" + b"data"))


def numbers(index: int, amount: int) -> bytes:
    return struct.pack("!BIII", index, amount, 0, 0)


def test_registers_keep_what_packets_leave_and_saturate() -> None:
    program = started("registers")
    before = [struct.unpack("!II", answer(program, numbers(5, amount))[7:]) for amount in (3, 5, 100, 1)]
    assert before == [(0xFFFFFFF0, 7), (0xFFFFFFF3, 3), (0xFFFFFFF8, 5), (0xFFFFFFFF, 5)]
    assert program.objects["Ingress.totals"].cells[5] == 0xFFFFFFFF
    assert program.objects["Ingress.pairs"].cells[5] == (5, 1)
    assert program.objects["Ingress.pairs"].cells[4] == (7, 9)


def test_counters_count_frames_without_what_a_program_takes_off() -> None:
    program = started("registers")
    frame = ethernet(numbers(9, 1) + bytes(20))
    for _ in range(3):
        answer(program, numbers(9, 1) + bytes(20))
    assert program.objects["Ingress.packets"].cells == {9: [3, 3 * len(frame)]}
    assert FCS_BYTES == 4


def test_a_meter_without_a_burst_colours_everything_green() -> None:
    meter = Meter({1: 2})
    assert [meter.execute(1, {}) for _ in range(4)] == [GREEN, GREEN, RED, RED]
    assert [meter.execute(2, {}) for _ in range(4)] == [GREEN] * 4


@pytest.mark.parametrize(
    ("crc", "expected"),
    [
        (CRC32, 0xCBF43926),
        (CRC16, 0xBB3D),
        (Crc(16, 0x1021, False, 0xFFFF, 0), 0x29B1),
        (Crc(32, 0x04C11DB7, False, 0xFFFFFFFF, 0xFFFFFFFF), 0xFC891918),
    ],
)
def test_crcs_have_their_published_check_values(crc: Crc, expected: int) -> None:
    assert crc.of(CHECK) == expected


def test_a_program_may_bring_its_own_polynomial() -> None:
    assert answer(started("polynomial"), CHECK + bytes(2))[2:] == CHECK + b"\x29\xb1"


def test_sums_of_words_are_those_of_internet_checksums() -> None:
    random = Random(3)
    for _ in range(300):
        octets = random.randbytes(random.randrange(1, 40))
        assert word_sum(int.from_bytes(octets, "big"), 8 * len(octets)) ^ 0xFFFF == internet_checksum(octets)
    assert word_sum(0, 64) == 0


def test_a_register_of_pairs_holds_pairs() -> None:
    register = started("registers").objects["Ingress.pairs"]
    assert isinstance(register, Register)
    assert register.cells == [(7, 9)] * 256
