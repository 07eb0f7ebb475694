import math
from collections.abc import Callable
from typing import Any

import pytest

from runtime.codec import MalformedError  # noqa: F401 - a class that the module's namespace holds
from runtime.sources import described, loaded

FACTOR = 3
TABLE: Any = object()


def scaled(x: float) -> float:
    return x * FACTOR


def travelled(call: Callable[..., Any]) -> Callable[..., Any]:
    return loaded(described(call))


def test_a_function_of_a_module_travels_as_its_path() -> None:
    description = described(scaled)
    assert description["kind"] == "import"
    assert loaded(description) is scaled


def test_another_version_of_the_module_is_refused() -> None:
    description = {**described(scaled), "hash": "0" * 64}
    with pytest.raises(ImportError, match=r"test_sources.scaled: the client has another version"):
        loaded(description)


def test_lambdas_travel_as_text_with_what_they_use() -> None:
    offset = (1, 2)
    first, second = (lambda x: scaled(x) + offset[0], lambda x: scaled(x) + offset[1] + math.pi)
    assert described(first)["kind"] == "source"
    assert travelled(first)(2) == 7
    assert travelled(second)(2) == 8 + math.pi


def test_inner_functions_keep_their_lines() -> None:
    def raises(x: int) -> None:
        y = x + 1
        raise KeyError(y)

    with pytest.raises(KeyError) as caught:
        travelled(raises)(1)
    with pytest.raises(KeyError) as expected:
        raises(1)
    assert caught.tb.tb_next is not None
    assert expected.tb.tb_next is not None
    assert caught.tb.tb_next.tb_lineno == expected.tb.tb_next.tb_lineno


def test_what_cannot_travel_is_named() -> None:
    with pytest.raises(TypeError, match="it uses TABLE, a object, which cannot travel"):
        described(lambda: TABLE)
    with pytest.raises(TypeError, match="expected a function in Python"):
        described(math.sin)
