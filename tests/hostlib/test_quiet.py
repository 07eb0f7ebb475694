"""What the host library has gRPC write to stderr."""

import subprocess
import sys

_CONTROLLER_THAT_ENDS = """
import threading
from concurrent.futures import ThreadPoolExecutor
import hostlib
import grpc

is_asked, is_over = threading.Event(), threading.Event()

class Hung(grpc.GenericRpcHandler):
    def service(self, _):
        def answer(*_):
            is_asked.set()
            is_over.wait()
        return grpc.unary_unary_rpc_method_handler(answer)

server = grpc.server(ThreadPoolExecutor(1))
server.add_generic_rpc_handlers((Hung(),))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
    call = channel.unary_unary("/a/b").future(b"")
    is_asked.wait()
    server.stop(0)
    print(call.exception().code().name)
    is_over.set()
"""


def test_nothing_is_written_of_a_connection_that_the_other_end_ends() -> None:
    ended = subprocess.run([sys.executable, "-c", _CONTROLLER_THAT_ENDS], capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("UNAVAILABLE\n", "")
