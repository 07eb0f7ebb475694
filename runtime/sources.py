"""Functions on their way to executors: as an import path, or as source text. Never as a pickle.

A function of an importable module travels as its path, with the hash of its text, so that an executor with another
version of the module refuses it. Any other function, a lambda or one of the script that runs, travels as its text with
what it uses: modules by name, plain values, and functions of the same kind.
"""

import ast
import hashlib
import importlib
import inspect
import linecache
import math
import sys
import textwrap
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import FunctionType, ModuleType
from typing import Any

from runtime.functions import Function

_TRIES = 3
_PLAIN = (type(None), bool, int, float, complex, str, bytes)


def described(call: Callable[..., Any]) -> dict[str, Any]:
    """Return what an executor needs to make a function anew, in types that JSON has.

    Raises TypeError for a callable whose source cannot be found, and for one that uses what cannot travel.
    """
    call = _plain_function(call)
    module = call.__module__
    if module != "__main__" and "<" not in call.__qualname__ and _importable(module, call):
        return {"kind": "import", "module": module, "name": call.__qualname__, "hash": _hash(_source(call))}
    return _source_description(call, frozenset())


def loaded(description: Mapping[str, Any]) -> Callable[..., Any]:
    """Make the function that ``described`` describes.

    Raises ImportError for a module that is not here or is of another version, and what the source raises.
    """
    if description["kind"] == "import":
        found: Any = importlib.import_module(description["module"])
        for part in description["name"].split("."):
            found = getattr(found, part)
        call = _plain_function(found)
        if _hash(_source(call)) != description["hash"]:
            raise ImportError(f"{description['module']}.{description['name']}: the client has another version of it")
        return call
    names: dict[str, Any] = {"__name__": description["module"]}
    for name, used in description["names"].items():
        names[name] = _loaded_name(used)
    tree = _parsed(description["text"])
    _drop_annotations(tree)
    ast.increment_lineno(tree, description["line"] - 1)
    exec(compile(tree, description["file"], "exec"), names)  # nosec B102 # authenticated clients' functions
    made = names[description["name"]]
    assert callable(made)
    return made  # type: ignore[no-any-return]


def _plain_function(call: object) -> FunctionType:
    if isinstance(call, Function):
        call = call.call
    if not isinstance(call, FunctionType):
        raise TypeError(f"expected a function in Python, got {call!r:.200}")
    return call


def _importable(module: str, call: FunctionType) -> bool:
    found: Any = sys.modules.get(module)
    for part in call.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is call or (isinstance(found, Function) and found.call is call)


def _source(call: FunctionType) -> str:
    try:
        return inspect.getsource(call)
    except (OSError, TypeError):
        raise TypeError(f"{call.__qualname__}: its source cannot be found; put it into a file") from None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _source_description(call: FunctionType, outer: frozenset[FunctionType]) -> dict[str, Any]:
    file_text, node = _syntax(call)
    if isinstance(node, ast.Lambda):
        name, text = "function", f"function = ({ast.get_source_segment(file_text, node)})"
    else:
        name, text = call.__name__, _lines(file_text, node)
    _drop_annotations(node)
    inner = (
        [*ast.walk(node.args), *ast.walk(node.body)]
        if isinstance(node, ast.Lambda)
        else [each for part in (node.args, *node.body) for each in ast.walk(part)]
    )
    here = [each for each in inner if isinstance(each, ast.Name)]
    own = {each.id for each in here if not isinstance(each.ctx, ast.Load)}
    own |= {each.arg for each in inner if isinstance(each, ast.arg)}
    used = {each.id for each in here} - own
    names = {}
    for each, value in _variables(call).items():
        if each in used and value is not call:
            names[each] = _described_name(call, each, value, outer | {call})
    return {
        "kind": "source",
        "module": call.__module__,
        "name": name,
        "text": text,
        "file": call.__code__.co_filename,
        "line": node.lineno,
        "names": names,
        "hash": _hash(text),
    }


def _lines(text: str, node: ast.FunctionDef) -> str:
    """Return the lines of a function without its decorators, moved to the left margin."""
    return textwrap.dedent("\n".join(text.splitlines()[node.lineno - 1 : node.end_lineno]))


def _syntax(call: FunctionType) -> tuple[str, ast.Lambda | ast.FunctionDef]:
    """Return the text of the file of a function, and the function's syntax in it."""
    text = "".join(linecache.getlines(call.__code__.co_filename, call.__globals__))
    if not text:
        _source(call)
    line = call.__code__.co_firstlineno
    found: list[ast.Lambda | ast.FunctionDef] = []
    for node in ast.walk(_parsed(text)):
        if call.__name__ == "<lambda>":
            if isinstance(node, ast.Lambda) and node.lineno == line and _holds(node.body, call):
                found.append(node)
        elif isinstance(node, ast.FunctionDef) and node.name == call.__name__:
            first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
            if first == line:
                found.append(node)
    if found:
        return text, found[-1]  # of lambdas that hold each other, the innermost
    raise TypeError(f"{call.__qualname__}: its source cannot be found at {call.__code__.co_filename}:{line}")


def _parsed(text: str) -> ast.Module:
    """Return the syntax tree of a text, tried again where CPython has miscounted (python/cpython issue 106905).

    Before 3.11.8 all threads share one count of how deep trees are, and collecting garbage may let another one parse.
    """
    for _ in range(_TRIES):
        with suppress(SystemError):
            return ast.parse(text)
    return ast.parse(text)


def _drop_annotations(tree: ast.AST) -> None:
    """Drop the annotations of functions, which name what the functions do not use."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None


def _holds(body: ast.expr, call: FunctionType) -> bool:
    """Return whether a lambda of this body may be the function: all of its instructions lie in the body."""
    end = (body.end_lineno or body.lineno, body.end_col_offset or 0)
    return all(
        (body.lineno, body.col_offset) <= (line, column) and (last_line, last_column) <= end
        for line, last_line, column, last_column in call.__code__.co_positions()
        if line is not None
        and last_line is not None
        and column is not None
        and last_column  # 0 has no place in the text
    )


def _variables(call: FunctionType) -> dict[str, Any]:
    """Return what a function sees outside of itself."""
    closure = dict(zip(call.__code__.co_freevars, call.__closure__ or (), strict=True))
    return {**call.__globals__, **{name: cell.cell_contents for name, cell in closure.items()}}


def _described_name(call: FunctionType, name: str, value: object, outer: frozenset[FunctionType]) -> dict[str, Any]:
    if isinstance(value, ModuleType):
        return {"module": value.__name__}
    if _is_plain(value):
        return {"value": repr(value)}
    if isinstance(value, Function | FunctionType):
        plain = _plain_function(value)
        if plain in outer:
            raise TypeError(f"{call.__qualname__}: it and {name} call each other, which cannot travel as source")
        if plain.__module__ != "__main__" and "<" not in plain.__qualname__ and _importable(plain.__module__, plain):
            return {"function": described(plain)}
        return {"function": _source_description(plain, outer)}
    module, qualname = getattr(value, "__module__", None), getattr(value, "__qualname__", "<")
    if isinstance(value, type | type(len)) and module not in (None, "__main__") and "<" not in qualname:
        return {"module": module, "attribute": qualname}
    raise TypeError(
        f"{call.__qualname__}: it uses {name}, a {type(value).__name__}, which cannot travel; "
        "pass it as an argument, or put the function into a module that executors can import"
    )


def _is_plain(value: object) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    if isinstance(value, float):
        return math.isfinite(value)
    return type(value) in _PLAIN


def _loaded_name(used: Mapping[str, Any]) -> object:
    if "module" in used:
        found: Any = importlib.import_module(used["module"])
        for part in used.get("attribute", "").split(".") if "attribute" in used else ():
            found = getattr(found, part)
        return found
    if "function" in used:
        return loaded(used["function"])
    return ast.literal_eval(used["value"])
