"""Headers of packets from and to a controller, as the program has them: with its widths and its padding."""

import re
from collections.abc import Mapping
from dataclasses import replace

from emulator.p4runtime.controller_packets import ControllerHeader, MetadataField
from emulator.p4runtime.device_config import DeviceConfig
from emulator.p4runtime.differences import LOG, disagreement

_Fields = Mapping[str, int | None]


def agreed_header(header: ControllerHeader, config: DeviceConfig) -> ControllerHeader:
    """Return a controller header with the fields of the program's header, those without metadata as padding.

    The program may name it freely; then its fields tell it. If no header has them, p4c has dropped it, and packets
    carry what the P4Info declares. Raises RequestError, INVALID_ARGUMENT, for a header that differs.
    """
    where = f"controller header {header.name}"
    compiled = config.fields_of.get(header.name)
    if compiled is not None:
        found = _matched(header, compiled)
        if found is None:
            declared = [(field.name, field.width_bits) for field in header.fields]
            raise disagreement(where, f"fields: {declared}, but {list(compiled.items())} in the JSON")
        return replace(header, fields=found)
    if not header.fields:
        return header
    for fields in config.fields_of.values():
        found = _matched(header, fields)
        if found is not None:
            return replace(header, fields=found)
    names = {field.name for field in header.fields}
    if any(names == set(kind.names) for kind in config.header_types):
        declared = [(field.name, field.width_bits) for field in header.fields]
        raise disagreement(where, f"no header of the JSON has the fields {declared}")
    LOG.info("%s is not in the compiled program", where)
    missing = -sum(field.width_bits for field in header.fields) % 8
    padding = (MetadataField(0, "", missing),) if missing else ()
    return replace(header, fields=(*header.fields, *padding))


def _matched(header: ControllerHeader, compiled: _Fields) -> tuple[MetadataField, ...] | None:
    """Return the fields of a compiled header, each with its metadata or as padding; None if they are others."""
    waiting = list(header.fields)
    found: list[MetadataField] = []
    for name, width_bits in compiled.items():
        if width_bits is None:
            return None
        if waiting and _is(waiting[0], name, width_bits):
            found.append(replace(waiting.pop(0), width_bits=width_bits))
        else:
            found.append(MetadataField(0, name, width_bits))
    return None if waiting or not header.fields else tuple(found)


def _is(field: MetadataField, name: str, width_bits: int) -> bool:
    """Return whether a field of the program is that of a P4Info; p4c flattens ``b.c`` to ``_b_c0``."""
    if width_bits != field.width_bits and not field.is_translated:
        return False
    declared, compiled = (re.sub(r"\W|_", "", text) for text in (field.name, name))
    return name == field.name or re.fullmatch(re.escape(declared) + r"\d*", compiled) is not None
