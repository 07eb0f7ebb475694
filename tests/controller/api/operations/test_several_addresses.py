"""The operations client with several addresses: it skips controllers that hang, and waits for one to lead."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count

import grpc
import pytest

from controller.api.operations import operations_pb2 as wire
from controller.api.operations.client import Operations, OperationsError
from controller.api.operations.methods import LIST_JOBS

_JOB = wire.JobPage(states=[wire.JobState(name="gpt")]).SerializeToString()
_Answer = Callable[[int, grpc.ServicerContext], Iterator[bytes]]


class _Handler(grpc.GenericRpcHandler):
    def __init__(self, answer: _Answer) -> None:
        self._answer = answer
        self._numbers = count()

    def service(self, _: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes]":
        number = next(self._numbers)
        return grpc.unary_stream_rpc_method_handler(lambda _, context: self._answer(number, context))


@contextmanager
def _controller(answer: _Answer) -> Iterator[str]:
    """The address of one that answers the first call, the second one, and so on, like this."""
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((_Handler(answer),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


def _leads_not(_: int, context: grpc.ServicerContext) -> Iterator[bytes]:
    context.abort(grpc.StatusCode.UNAVAILABLE, "this controller does not lead: one does")
    yield b""


def _leads_soon(number: int, context: grpc.ServicerContext) -> Iterator[bytes]:
    if number < 3:
        yield from _leads_not(number, context)
    yield _JOB


def _names(*addresses: str) -> list[str]:
    with Operations(addresses) as operations:
        return [job.name for job in operations.list(LIST_JOBS)]


def test_a_hanging_controller_is_skipped_and_a_standby_awaited() -> None:
    is_over = threading.Event()

    def hangs(_: int, __: grpc.ServicerContext) -> Iterator[bytes]:
        is_over.wait()
        yield b""

    with _controller(hangs) as hung, _controller(_leads_soon) as soon:
        try:
            assert _names(hung, soon) == ["gpt"]
        finally:
            is_over.set()


def test_a_single_standby_answers_at_once() -> None:
    with _controller(_leads_not) as address, pytest.raises(OperationsError) as refused:
        _names(address)
    assert str(refused.value) == f"{address}: this controller does not lead: one does"


def test_absent_controllers_are_not_awaited() -> None:
    with pytest.raises(OperationsError, match=r"no controller answers at 127.0.0.1:1: .*; no controller answers at "):
        _names("127.0.0.1:1", "127.0.0.1:2")
