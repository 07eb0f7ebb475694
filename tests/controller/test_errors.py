"""The controller's public errors are one tree, apart from those of the operations client."""

import importlib
import inspect
import pkgutil

import controller
from controller.api.operations.client import OperationsError
from controller.errors import DaemonError
from controller.southbound.p4runtime.reconnecting import ConnectionLostError

APART = (OperationsError, ConnectionLostError)
"""The base of a client's errors, and an error that only finsy sees."""


def test_public_errors_have_one_base() -> None:
    modules = [
        importlib.import_module(found.name)
        for found in pkgutil.walk_packages(controller.__path__, "controller.")
        if not found.name.endswith("__main__")
    ]
    errors = {
        error
        for module in modules
        for name, error in inspect.getmembers(module, inspect.isclass)
        if issubclass(error, Exception) and error.__module__.startswith("controller.") and not name.startswith("_")
    }
    assert len(errors) > 10
    assert {error.__qualname__ for error in errors if not issubclass(error, (DaemonError, *APART))} == set()
