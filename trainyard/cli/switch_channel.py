"""How commands reach a switch of an emulator, beside any controller."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc

from hostlib.addresses import check_host_port
from hostlib.credentials import Credentials
from trainyard.cli.connecting import tls_hint
from trainyard.cli.exits import fail, refuse


def check_switch_address(address: str) -> None:
    """Refuse an address that is not HOST:PORT."""
    try:
        check_host_port(address)
    except ValueError as error:
        refuse(f"{error}, got {address!r}")


@contextmanager
def switch_channel(
    address: str, ca: Path | None, certificate: Path | None, key: Path | None, failure: str
) -> Iterator[grpc.Channel]:
    """Yield a channel; a call that fails ends the command, which then says ``failure`` and the reason."""
    try:
        credentials = Credentials.from_environment(ca=ca, certificate=certificate, key=key)
        connection = credentials.channel(address)
    except ValueError as error:
        refuse(str(error))
    with connection as channel:
        try:
            yield channel
        except grpc.RpcError as error:
            reason = error.details() if isinstance(error, grpc.Call) else error
            fail(f"{address}: {failure}: {reason}{tls_hint(str(reason), credentials)}")
