"""Have finsy take answers above gRPC's 4 MiB: BMv2's and Tofino's server puts all that is read into one message.

65,536 flows are 5 MB. Source: ``proto/server/pi_server.cpp`` of p4lang/PI, which takes messages up to 256 MiB itself.
"""

from typing import Any

from finsy import Switch
from finsy.grpcutil import GRPCChannelArgumentType, GRPCOptions, grpc_channel
from finsy.proto import p4r_grpc

from controller.southbound.p4runtime.reading import MAX_BYTES


class _Options(GRPCOptions):
    """finsy's options of a channel, and messages of MAX_BYTES."""

    def __init__(self) -> None:
        super().__init__(max_metadata_size=64 << 10, max_reconnect_backoff_ms=15_000)

    def to_native(self) -> GRPCChannelArgumentType:
        """Return what gRPC takes."""
        return [*super().to_native(), ("grpc.max_receive_message_length", MAX_BYTES)]


def take_large_answers(switch: Switch) -> None:
    """Have a switch that is not connected take messages of MAX_BYTES, for which finsy has no parameter."""
    start = switch._switch_start

    def start_with_large_answers() -> None:
        client = switch._p4client
        assert client is not None
        open_channel = client.open

        async def open_large_channel(**options: Any) -> None:
            await open_channel(**options)
            assert client._channel is not None
            await client._channel.close()  # connects at its first call
            client._channel = grpc_channel(client._address, credentials=client._credentials, options=_Options())
            client._stub = p4r_grpc.P4RuntimeStub(client._channel)

        vars(client)["open"] = open_large_channel
        start()  # type: ignore[no-untyped-call]

    vars(switch)["_switch_start"] = start_with_large_answers
