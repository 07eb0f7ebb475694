"""What hostile or broken peers send: they are refused by name, and others go on."""

import socket
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import runtime as rt
from runtime import messages
from runtime.addresses import dialled
from runtime.frames import GREETING_BYTES, FrameReader, Kind, prefix
from runtime.program import Value
from runtime.resources.slices import Constraints
from tests.patience import PATIENCE_S
from tests.runtime.programs import call, chain

pytestmark = pytest.mark.slow

SPEC = rt.ArraySpec((4,), "float64")
ADD = messages.RegisterFunction(0, "add", "timer", 0.0, None)


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.LocalRuntime]:
    with rt.local(islands=1, hosts=1, devices=2) as started:
        yield started


def goes_on(runtime: rt.LocalRuntime) -> bool:
    """Whether the runtime still computes for others."""
    one = runtime.make_virtual_device_set().add_slice(2)
    double = rt.function(library="numpy", outputs=lambda x: x)(lambda x: x * 2)
    return bool((rt.pmap(double, devices=one)(np.ones(2)).numpy(PATIENCE_S) == 2).all())


def answers(address: str, *sent: bytes) -> list[object]:
    """What a process answers until it closes the connection."""
    found: list[object] = []
    with dialled(address) as connection:
        connection.settimeout(PATIENCE_S)
        reader = FrameReader(1 << 20)
        try:
            for each in sent:
                connection.sendall(each)
            while size := connection.recv_into(reader.memory()):
                found += [messages.decode(frame.header) for frame in reader.received(size)]
        except ConnectionError:
            pass  # it closed before it had read everything
    return found


def framed(message: object, payload: bytes = b"", kind: int = Kind.MESSAGE) -> bytes:
    header = messages.encode(message)
    return prefix(kind, header, len(payload)) + payload if payload else prefix(kind, header, 0)


def hello(runtime: rt.LocalRuntime, **changes: Any) -> bytes:
    fields = {"version": messages.VERSION, "role": "client", "name": "", "token": runtime.tokens["local"]}
    return framed(messages.Hello(**{**fields, **changes}))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"token": "guess"}, "token: unknown"),
        ({"role": "executor", "name": "0"}, "token: unknown"),
        ({"role": "king"}, "token: unknown"),
        ({"version": 99}, "version: expected 1, got 99"),
    ],
)
def test_greetings_that_the_server_refuses(runtime: rt.LocalRuntime, changes: dict[str, Any], says: str) -> None:
    assert answers(runtime.address, hello(runtime, **changes)) == [messages.Refused(None, says)]
    assert goes_on(runtime)


def test_strangers_send_no_pickle_and_nothing_large(runtime: rt.LocalRuntime) -> None:
    pickle = b"\x80\x04\x8c\x05posix\x94\x8c\x06system\x94\x93\x94."
    (refused,) = answers(runtime.address, prefix(Kind.MESSAGE, pickle, 0))
    assert refused == messages.Refused(None, "expected a message")
    (refused,) = answers(runtime.address, prefix(Kind.MESSAGE, b"", GREETING_BYTES + 1))
    assert isinstance(refused, messages.Refused)
    assert "at most" in refused.message
    assert goes_on(runtime)


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ([framed(messages.Execute(3, (), ()))], "there is no program 3"),
        ([framed(messages.RegisterProgram(0, chain(4, 2, 2), (9,)))], "chain: there is no function 9"),
        ([framed(messages.RegisterProgram(0, chain(4, 2, 2), ()))], "not in its table"),
        ([framed(messages.DropClient(0, messages.Failure("", ""), (), ()))], "clients send no DropClient"),
        ([prefix(Kind.GRANTS, b"", 0)], "clients send no frames of kind 3"),
        ([framed(messages.Execute(0, (5,), (0,)))], "there is no array 5"),
        ([framed(messages.Execute(0, (), (0,)))], "chain: expected a handle for each argument and result"),
        ([framed(messages.Execute(0, (-1,), (-1,)))], "chain: expected new handles for its results"),
        ([framed(messages.Execute(0, (-1,), (1 << 62,)))], "chain: expected new handles for its results"),
    ],
)
def test_messages_of_clients_that_the_server_refuses(runtime: rt.LocalRuntime, sent: list[bytes], says: str) -> None:
    begin = [hello(runtime), framed(ADD), framed(messages.RegisterProgram(0, chain(4, 2, 2), (0,)))]
    welcome, refused = answers(runtime.address, *begin, *sent)
    assert isinstance(welcome, messages.Welcome)
    assert isinstance(refused, messages.Refused)
    assert says in refused.message
    assert goes_on(runtime)


def test_arguments_of_another_size_fail_the_results_alone(runtime: rt.LocalRuntime) -> None:
    spec = SPEC
    program = rt.Program("one", (spec,), (call("add", 0, Value(0), spec, rt.Sharding(0, 2)),), (Value(1),))
    with dialled(runtime.address) as connection:
        connection.settimeout(PATIENCE_S)
        for each in (
            hello(runtime),
            framed(messages.AddSlice(0, 0, 2, None, None, Constraints())),
            framed(ADD),
            framed(messages.RegisterProgram(0, program, (0,))),
            framed(messages.Execute(0, (-1,), (0,)), b"short"),
            framed(messages.Fetch(1, 0, True)),
        ):
            connection.sendall(each)
        found = received(connection, 3)
    assert isinstance(found[2], messages.FetchFailed)
    assert "one: " in found[2].failure.message
    assert goes_on(runtime)


def received(connection: socket.socket, number: int) -> list[object]:
    reader, found = FrameReader(1 << 20), []
    while len(found) < number:
        size = connection.recv_into(reader.memory())
        assert size
        found += [messages.decode(frame.header) for frame in reader.received(size)]
    return found
