"""The call by which operators have a controller read its configuration again."""

import asyncio
from collections.abc import Sequence

import grpc

from controller.api.calls import Calls
from controller.api.operations import operations_pb2 as wire
from controller.api.operations.methods import RELOAD
from controller.api.operations.reload_call import reload_handler
from tests.patience import PATIENCE_S


def test_a_reload_goes_on_where_its_operator_leaves() -> None:
    async def test() -> None:
        begun, goes_on, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def reload() -> Sequence[str]:
            begun.set()
            await goes_on.wait()
            ended.set()
            return ()

        server = grpc.aio.server()
        server.add_generic_rpc_handlers((reload_handler(Calls(), reload),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with asyncio.timeout(PATIENCE_S), grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            call = channel.unary_unary(RELOAD.path, RELOAD.request.SerializeToString, RELOAD.response.FromString)
            asked = call(wire.ReloadRequest())
            await begun.wait()
            asked.cancel()
            await asyncio.sleep(0.1)  # what would be cancelled is by then
            goes_on.set()
            await ended.wait()
        await server.stop(None)

    asyncio.run(test())
