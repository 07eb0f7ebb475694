"""Names in a BMv2 JSON that a P4Info must agree with.

This module reads only the parts that P4Runtime refers to; the emulator's compiler reads the others.
"""

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from emulator.p4runtime.errors import invalid_argument


class _Part(BaseModel):
    # p4c's format has many more keys.
    model_config = ConfigDict(frozen=True, extra="ignore")


class CompiledParameter(_Part):
    """One parameter of an action."""

    name: str
    bitwidth: int


class CompiledAction(_Part):
    """An action; p4c makes several of one name if tables need separate ones."""

    name: str
    id: int | None = None
    runtime_data: tuple[CompiledParameter, ...] = ()


class CompiledKeyField(_Part):
    """One field of a table's key; ``target`` is the packet's field."""

    name: str = ""
    match_type: str
    target: tuple[str, ...] = ()


class CompiledDefault(_Part):
    """Action of a table for packets that match no entry."""

    action_id: int
    action_const: bool = False


class CompiledTable(_Part):
    """A table. If the program has ``entries``, p4c writes their number as ``max_size``, not the declared size."""

    name: str
    key: tuple[CompiledKeyField, ...] = ()
    max_size: int
    action_ids: tuple[int, ...]
    actions: tuple[str, ...]
    action_profile: str | None = None
    default_entry: CompiledDefault | None = None
    entries: tuple[object, ...] | None = None
    support_timeout: bool = False

    @property
    def constant_default(self) -> str | None:
        """Name of the constant default action, None if it can be changed."""
        if self.default_entry is None or not self.default_entry.action_const:
            return None
        return dict(zip(self.action_ids, self.actions, strict=False)).get(self.default_entry.action_id)


class CompiledProfile(_Part):
    """An action profile; ``selector`` is set if its tables choose among the members of a group."""

    name: str
    max_size: int
    selector: object = None


class _Pipeline(_Part):
    tables: tuple[CompiledTable, ...] = ()
    action_profiles: tuple[CompiledProfile, ...] = ()


class CompiledArray(_Part):
    """Counters or meters: an array, or those of the entries of the table ``binding``."""

    name: str
    size: int | None = None
    is_direct: bool = False
    binding: str | None = None


class CompiledRegister(_Part):
    """A register array."""

    name: str
    size: int
    bitwidth: int


class CompiledValueSet(_Part):
    """A value set of the parser."""

    name: str
    max_size: int = 0
    compressed_bitwidth: int = 0


class _Element(_Part):
    type: str
    value: tuple[str, ...] = ()


class CompiledDigest(_Part):
    """A list of values that the program tells its controllers."""

    name: str
    id: int
    elements: tuple[_Element, ...] = ()


_Width = int | Literal["*"]
_FieldType = tuple[str, _Width] | tuple[str, _Width, bool] | tuple[str, _Width, bool, bool]
"""Name, width, and whether it is signed and saturating."""


class _HeaderType(_Part):
    name: str
    fields: tuple[_FieldType, ...]

    @property
    def names(self) -> list[str]:
        """Names of the fields, in order."""
        return [name for name, *_ in self.fields]


class _Header(_Part):
    name: str
    header_type: str


class DeviceConfig(_Part):
    """A program compiled by p4c for BMv2; ``digest`` identifies it independently of the JSON's formatting."""

    program: str = "an unnamed program"
    header_types: tuple[_HeaderType, ...]
    headers: tuple[_Header, ...]
    actions: tuple[CompiledAction, ...]
    pipelines: tuple[_Pipeline, ...]
    counter_arrays: tuple[CompiledArray, ...] = ()
    meter_arrays: tuple[CompiledArray, ...] = ()
    register_arrays: tuple[CompiledRegister, ...] = ()
    parse_vsets: tuple[CompiledValueSet, ...] = ()
    learn_lists: tuple[CompiledDigest, ...] = ()
    digest: str = Field(default="", exclude=True)

    def __str__(self) -> str:
        return f"{self.program} ({self.digest[:12]})"

    @cached_property
    def fields_of(self) -> Mapping[str, Mapping[str, int | None]]:
        """Fields of every header instance in order, with their widths in bits; None for one without a width."""
        types = {
            header_type.name: {name: None if width == "*" else width for name, width, *_ in header_type.fields}
            for header_type in self.header_types
        }
        return {header.name: types.get(header.header_type, {}) for header in self.headers}

    def key_width_bits(self, field: CompiledKeyField) -> int | None:
        """Return the width of the packet's field in a key; None if the JSON has no such field."""
        return self.element_width_bits(field.target)

    def element_width_bits(self, place: tuple[str, ...]) -> int | None:
        """Return the width of a field of a packet; None if the JSON has no such field."""
        match place:
            case (header, "$valid$") if header in self.fields_of:
                return 1
            case (header, name):
                return self.fields_of.get(header, {}).get(name)
        return None


def read_device_config(data: bytes) -> DeviceConfig:
    """Read a BMv2 JSON. Raises RequestError, INVALID_ARGUMENT, if the data is not one."""
    try:
        document = json.loads(data)
        canonical = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
        config = DeviceConfig.model_validate(document)
    except (ValueError, RecursionError) as error:
        raise invalid_argument(f"the device config is not a BMv2 JSON: {_first_line(error)}") from None
    return config.model_copy(update={"digest": hashlib.sha256(canonical).hexdigest()})


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    return str(error).partition("\n")[0]
