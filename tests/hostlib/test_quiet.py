"""What the host library has gRPC write to stderr."""

import subprocess
import sys

_CONTROLLER_THAT_ENDS = """
import asyncio
import hostlib
import grpc
import grpc.aio

class Hung(grpc.GenericRpcHandler):
    def __init__(self):
        self.is_asked = asyncio.Event()

    def service(self, _):
        async def answer(*_):
            self.is_asked.set()
            await asyncio.sleep(60)
        return grpc.unary_unary_rpc_method_handler(answer)

async def main():
    server, hung = grpc.aio.server(), Hung()
    server.add_generic_rpc_handlers((hung,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary("/a/b")(b"")
        await hung.is_asked.wait()
        await server.stop(0)
        try:
            await call
        except grpc.RpcError as error:
            print(error.code().name)

asyncio.run(main())
"""


def test_nothing_is_written_of_a_connection_that_the_other_end_ends() -> None:
    ended = subprocess.run([sys.executable, "-c", _CONTROLLER_THAT_ENDS], capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("UNAVAILABLE\n", "")
