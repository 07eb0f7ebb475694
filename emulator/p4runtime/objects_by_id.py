"""Objects of a P4Info by the ids that it gives them."""

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

from emulator.p4runtime.errors import invalid_argument


class Named(Protocol):
    """An object with an id and a name."""

    @property
    def id(self) -> int:
        """The id that the P4Info gives it."""

    @property
    def name(self) -> str:
        """The name that the program gives it."""


_Object = TypeVar("_Object")
_NamedObject = TypeVar("_NamedObject", bound=Named)


def index_by_id(objects: Iterable[_NamedObject], where: str = "P4Info") -> dict[int, _NamedObject]:
    """Return objects by id. Raises RequestError, INVALID_ARGUMENT, for two of one id."""
    by_id: dict[int, _NamedObject] = {}
    for item in objects:
        if item.id in by_id:
            raise invalid_argument(f"{where}: {by_id[item.id].name} and {item.name} have the same id {item.id:#010x}")
        by_id[item.id] = item
    return by_id


def find_by_id(objects: Mapping[int, _Object], kind: str, object_id: int) -> _Object:
    """Return an object. Raises RequestError, INVALID_ARGUMENT, for an unknown id."""
    try:
        return objects[object_id]
    except KeyError:
        raise invalid_argument(f"the P4Info has no {kind} with id {object_id:#010x}") from None
