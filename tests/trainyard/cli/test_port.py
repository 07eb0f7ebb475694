"""``trainyard port``: what it asks of a switch, and what it says where the switch refuses."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from finsy.proto import gnmi, gnmi_grpc

from tests.trainyard.cli.conftest import Trainyard


class _Switch(gnmi_grpc.gNMIServicer):
    """Notes what is set; it has a port 3, and no other."""

    def __init__(self) -> None:
        self.asked: list[gnmi.SetRequest] = []

    def Set(self, request: gnmi.SetRequest, context: Any) -> gnmi.SetResponse:  # type: ignore[override] # noqa: N802
        self.asked.append(request)
        if request.update[0].path.elem[1].key["name"] != "t0-eth3":
            context.abort(grpc.StatusCode.NOT_FOUND, "switch t0 has no such interface")
        return gnmi.SetResponse()


@pytest.fixture
def served() -> Iterator[tuple[_Switch, str]]:
    switch = _Switch()
    server = grpc.server(ThreadPoolExecutor(1))
    gnmi_grpc.add_gNMIServicer_to_server(switch, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield switch, f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


def test_a_port_may_be_named(trainyard: Trainyard, served: tuple[_Switch, str]) -> None:
    switch, address = served
    ended = trainyard("port", address, "t0", "Ethernet1/3", "down")
    assert switch.asked[0].update[0].path.elem[1].key["name"] == "Ethernet1/3"
    assert ended.stderr == f"{address}: port Ethernet1/3 of t0 cannot be set: switch t0 has no such interface\n"


@pytest.mark.parametrize("number", ["0", "4294967296", "9" * 5000])
def test_a_number_that_no_port_can_have_is_refused(
    trainyard: Trainyard, served: tuple[_Switch, str], number: str
) -> None:
    switch, address = served
    ended = trainyard("port", address, "t0", number, "down")
    assert ended.exit_code == 2
    assert ended.stderr.startswith("PORT: expected a number from 1 to 4294967295, or a name, got '")
    assert not switch.asked


@pytest.mark.parametrize(("state", "enabled"), [("up", True), ("down", False)])
def test_the_port_is_set(trainyard: Trainyard, served: tuple[_Switch, str], state: str, enabled: bool) -> None:
    switch, address = served
    assert trainyard("port", address, "t0", "3", state).exit_code == 0
    [asked] = switch.asked
    [update] = asked.update
    assert asked.prefix.target == "t0"
    assert [element.name for element in update.path.elem] == ["interfaces", "interface", "config", "enabled"]
    assert update.path.elem[1].key["name"] == "t0-eth3"
    assert update.val == gnmi.TypedValue(bool_val=enabled)


def test_a_refusal_is_shown(trainyard: Trainyard, served: tuple[_Switch, str]) -> None:
    result = trainyard("port", served[1], "t0", "4", "down")
    assert result.exit_code == 1
    assert result.stderr == f"{served[1]}: port 4 of t0 cannot be set: switch t0 has no such interface\n"


def test_an_address_without_a_port_is_refused(trainyard: Trainyard) -> None:
    assert trainyard("port", "127.0.0.1", "t0", "4", "down").exit_code == 2
