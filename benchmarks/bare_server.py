"""A gRPC server that takes registrations and heartbeats and does nothing with them: what the transport alone costs.

``python benchmarks/bare_server.py`` prints its address, and serves until it is terminated.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hostlib.wire import methods
from hostlib.wire import trainyard_pb2 as wire
from hostlib.wire.methods import SERVICE, Method, RequestT, ResponseT

_LEASE_S = 30.0


def _handler(method: Method[RequestT, ResponseT], response: ResponseT) -> "grpc.RpcMethodHandler[Any, Any]":
    async def answer(_: object, __: object) -> ResponseT:
        return response

    return grpc.unary_unary_rpc_method_handler(answer, method.request.FromString, method.response.SerializeToString)


async def _serve() -> None:
    server = grpc.aio.server()
    handlers = {
        methods.REGISTER_JOB.name: _handler(methods.REGISTER_JOB, wire.RegisterJobResponse(lease_s=_LEASE_S)),
        methods.REGISTER_FLOW_GROUPS.name: _handler(methods.REGISTER_FLOW_GROUPS, wire.RegisterFlowGroupsResponse()),
        methods.HEARTBEAT.name: _handler(methods.HEARTBEAT, wire.HeartbeatResponse()),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    print(f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}", flush=True)
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(_serve())
