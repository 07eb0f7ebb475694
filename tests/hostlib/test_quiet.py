"""The host library lets gRPC log errors only, unless the environment asks for more."""

import os
import subprocess
import sys

import pytest

_VERBOSITY = "GRPC_VERBOSITY"


@pytest.mark.parametrize(("wanted", "expected"), [(None, "ERROR"), ("DEBUG", "DEBUG")])
def test_grpc_writes_of_errors_alone_unless_more_is_wanted(wanted: str | None, expected: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != _VERBOSITY}
    if wanted is not None:
        environment[_VERBOSITY] = wanted
    program = f"import hostlib, os; print(os.environ[{_VERBOSITY!r}])"
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert ended.stdout == f"{expected}\n"
