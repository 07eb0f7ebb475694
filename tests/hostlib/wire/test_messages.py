"""The generated code matches the .proto, and the method table matches the service."""

import ast
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2

import hostlib
from hostlib.wire import methods
from hostlib.wire import trainyard_pb2 as wire
from hostlib.wire.methods import Method

ROOT = Path(hostlib.__file__).parent
PROTO = "hostlib/wire/trainyard.proto"


def test_generated_code_is_that_of_the_proto(tmp_path: Path) -> None:
    protoc = pytest.importorskip("grpc_tools.protoc")
    compiled = tmp_path / "descriptors"
    assert protoc.main(["protoc", f"-I{ROOT.parent}", f"--descriptor_set_out={compiled}", PROTO]) == 0
    (expected,) = descriptor_pb2.FileDescriptorSet.FromString(compiled.read_bytes()).file
    generated = descriptor_pb2.FileDescriptorProto()
    wire.DESCRIPTOR.CopyToProto(generated)
    # protoc adds the JSON names only to descriptors that it writes out.
    for message in expected.message_type:
        for field in message.field:
            field.ClearField("json_name")
    for message in generated.message_type:
        for field in message.field:
            field.ClearField("json_name")
    assert generated == expected


def test_methods_are_those_of_the_service() -> None:
    service = wire.DESCRIPTOR.services_by_name["Controller"]
    assert service.full_name == methods.SERVICE
    listed = [value for value in vars(methods).values() if isinstance(value, Method)]
    assert {(method.name, method.request.DESCRIPTOR, method.response.DESCRIPTOR) for method in listed} == {
        (method.name, method.input_type, method.output_type) for method in service.methods
    }


def test_host_library_needs_nothing_but_grpc_and_protobuf_except_for_pytorch_jobs() -> None:
    allowed = {"grpc", "google", "hostlib", *sys.stdlib_module_names}
    jobs, compression = ROOT / "torch", ROOT / "compression"
    pure = {compression / "choice.py", compression / "agreement.py", *(compression / "control").glob("*.py")}
    assert _imported_by(file for file in ROOT.rglob("*.py") if {jobs, compression}.isdisjoint(file.parents)) <= allowed
    assert _imported_by(pure) <= allowed, "decisions take no arrays"
    assert _imported_by(jobs.rglob("*.py")) <= {*allowed, "torch"}
    assert _imported_by(compression.rglob("*.py")) <= {*allowed, "torch", "numpy", "numba", "llvmlite"}


def _imported_by(files: Iterable[Path]) -> set[str]:
    return {
        name.partition(".")[0]
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        for name in _imported(node)
    }


def _imported(node: ast.AST) -> list[str]:
    match node:
        case ast.Import():
            return [alias.name for alias in node.names]
        case ast.ImportFrom(module=str(module)):
            return [module]
    return []
