"""Machine-code functions as the Python that they are written in, so that somebody can look on.

A function that is compiled keeps its Python function, whose globals hold other compiled functions. A plain namespace
has the same names with Python functions in place of all of these; some may be replaced by name. So have the variables
that a function takes from an enclosing one, and the emulator's modules that it names.
"""

from collections.abc import Callable, Mapping
from types import CellType, FunctionType, ModuleType
from typing import Any

from emulator.native.module import Inlined

Wrapper = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Returns what stands in place of a function."""


def executed(source: str, names: Mapping[str, Any]) -> dict[str, Any]:
    """Return the names of a program's source that is executed as Python, and of what it uses."""
    found = dict(names)
    exec(compile(source, "program", "exec"), found)  # nosec B102 # written by emulator.compiler
    return found


class PlainFunctions:
    """Plain namespaces that know each other; ``wrappers`` replace functions by their names."""

    def __init__(self, wrappers: Mapping[str, Wrapper]) -> None:
        self._wrappers = wrappers
        self._namespaces: dict[int, dict[str, Any]] = {}
        self._functions: dict[FunctionType, Callable[..., Any]] = {}

    def namespace(self, names: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Return the plain form of a module's names; ``more`` are names that are added, or have another meaning."""
        if id(names) in self._namespaces:
            return self._namespaces[id(names)]
        found = self._namespaces[id(names)] = dict(names)
        for name, value in names.items():
            is_own = isinstance(value, FunctionType) and value.__globals__ is names
            if is_own or isinstance(value, Inlined):
                found[name] = self._function(value if is_own else value.python)
            elif isinstance(value, ModuleType) and value.__name__.startswith("emulator."):
                found[name] = _PlainModule(self.namespace(vars(value)))
            elif name in self._wrappers:
                found[name] = self._wrappers[name](value)
        found |= more
        return found

    def _function(self, function: FunctionType) -> Callable[..., Any]:
        if function not in self._functions:
            names = self.namespace(function.__globals__)
        if function not in self._functions:
            cells = tuple(map(self._cell, function.__closure__ or ()))
            plain = FunctionType(function.__code__, names, function.__name__, function.__defaults__, cells)
            plain.__kwdefaults__ = function.__kwdefaults__
            wrapper = self._wrappers.get(function.__name__)
            self._functions[function] = wrapper(plain) if wrapper else plain
        return self._functions[function]

    def _cell(self, cell: CellType) -> CellType:
        """Return a variable of an enclosing function, with the Python function in place of a compiled one."""
        content = cell.cell_contents
        return CellType(self._function(content.python)) if isinstance(content, Inlined) else cell


class _PlainModule:
    """A module whose names are those of a plain namespace."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names

    def __getattr__(self, name: str) -> Any:
        return self._names[name]
