"""Calls by hand that are done once the database has them."""

from collections.abc import Coroutine
from typing import Any, TypeVar

from controller.background import to_its_end
from controller.errors import StoreError
from controller.registry.errors import CommitError

_ResultT = TypeVar("_ResultT")


async def stored(work: Coroutine[Any, Any, _ResultT]) -> _ResultT:
    """Do work to its end, also where the caller goes. Raises CommitError where the database has not stored it."""
    try:
        return await to_its_end(work)
    except StoreError as error:
        raise CommitError(f"not stored: {error}") from error
