"""The names in a BMv2 JSON that a P4Info must agree with.

Only what P4Runtime refers to is read here; what the rest of the JSON means is for the compiler of the emulator.
"""

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from emulator.p4runtime.errors import invalid_argument


class _Part(BaseModel):
    # The format is p4c's and has far more in it than is read here.
    model_config = ConfigDict(frozen=True, extra="ignore")


class CompiledParameter(_Part):
    """One argument of an action."""

    name: str
    bitwidth: int


class CompiledAction(_Part):
    """An action; p4c makes several of one name where tables need them apart."""

    name: str
    id: int | None = None
    runtime_data: tuple[CompiledParameter, ...] = ()


class CompiledKeyField(_Part):
    """One field of a table's key, of the packet's field ``target``."""

    name: str = ""
    match_type: str
    target: tuple[str, ...] = ()


class CompiledDefault(_Part):
    """The action of a table that no entry matches."""

    action_id: int
    action_const: bool = False


class CompiledTable(_Part):
    """A table. With ``entries`` of the program p4c gives their number as ``max_size``, not what the program says."""

    name: str
    key: tuple[CompiledKeyField, ...] = ()
    max_size: int
    action_ids: tuple[int, ...]
    actions: tuple[str, ...]
    action_profile: str | None = None
    default_entry: CompiledDefault | None = None
    entries: tuple[object, ...] | None = None

    @property
    def constant_default(self) -> str | None:
        """Name of the default action that nobody can change."""
        if self.default_entry is None or not self.default_entry.action_const:
            return None
        return dict(zip(self.action_ids, self.actions, strict=False)).get(self.default_entry.action_id)


class CompiledProfile(_Part):
    """An action profile, with a selector where its tables choose among the members of a group."""

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


_Width = int | Literal["*"]
_FieldType = tuple[str, _Width] | tuple[str, _Width, bool] | tuple[str, _Width, bool, bool]
"""Name, width, and whether it is signed and saturating."""


class _HeaderType(_Part):
    name: str
    fields: tuple[_FieldType, ...]


class _Header(_Part):
    name: str
    header_type: str


class DeviceConfig(_Part):
    """A program as p4c compiled it for BMv2; ``digest`` tells programs apart and ignores how the JSON is laid out."""

    program: str = "an unnamed program"
    header_types: tuple[_HeaderType, ...]
    headers: tuple[_Header, ...]
    actions: tuple[CompiledAction, ...]
    pipelines: tuple[_Pipeline, ...]
    counter_arrays: tuple[CompiledArray, ...] = ()
    meter_arrays: tuple[CompiledArray, ...] = ()
    register_arrays: tuple[CompiledRegister, ...] = ()
    parse_vsets: tuple[CompiledValueSet, ...] = ()
    digest: str = Field(default="", exclude=True)

    def __str__(self) -> str:
        return f"{self.program} ({self.digest[:12]})"

    @cached_property
    def fields_of(self) -> Mapping[str, Mapping[str, int | None]]:
        """The fields of every header instance in order, with their widths in bits; None for one without a width."""
        types = {
            header_type.name: {name: None if width == "*" else width for name, width, *_ in header_type.fields}
            for header_type in self.header_types
        }
        return {header.name: types.get(header.header_type, {}) for header in self.headers}

    def key_width_bits(self, field: CompiledKeyField) -> int | None:
        """Width of the packet's field that a key has; None where the JSON has no such field."""
        match field.target:
            case (header, "$valid$") if header in self.fields_of:
                return 1
            case (header, name):
                return self.fields_of.get(header, {}).get(name)
        return None


def read_device_config(data: bytes) -> DeviceConfig:
    """Read a BMv2 JSON. Raises RequestError, INVALID_ARGUMENT, where the data is not one."""
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
