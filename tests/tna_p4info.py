"""The P4Info of the program for Tofino: the compiled one, or that of v1model with what differs."""

from finsy.proto import p4i
from google.protobuf import text_format

from p4src import P4INFO, TNA_P4INFO

ECMP_TABLE = 0x0200_0101
SET_ECMP_GROUP = 0x0100_0101
_SET_NEXT_HOP = 0x0100_0006
_PROFILE = 0x1100_0001
_ECMP_TABLE_SIZE = 65_536


def v1model_p4info() -> p4i.P4Info:
    """That of v1model."""
    return text_format.Parse(P4INFO.read_text(), p4i.P4Info())


def tna_p4info(**sizes: int) -> p4i.P4Info:
    """That of Tofino, with other sizes of these tables."""
    found = text_format.Parse(TNA_P4INFO.read_text(), p4i.P4Info()) if TNA_P4INFO.is_file() else _derived()
    for table in found.tables:
        table.size = sizes.get(table.preamble.alias, table.size)
    return found


def _derived() -> p4i.P4Info:
    found = v1model_p4info()
    found.pkg_info.arch = "tna"
    del found.action_profiles[:]
    for action in found.actions:
        for parameter in action.params:
            parameter.name = {"hash_multiplier": "hash_salt", "depth_packets": "depth_cells"}.get(
                parameter.name, parameter.name
            )
            if parameter.name == "depth_cells":
                parameter.bitwidth = 32
    group, slot = (("group", 8), ("slot", 10))
    found.actions.add(
        preamble=p4i.Preamble(id=SET_ECMP_GROUP, name="ingress.set_ecmp_group", alias="set_ecmp_group"),
        params=[
            p4i.Action.Param(id=1, name=group[0], bitwidth=group[1]),
            p4i.Action.Param(id=2, name="slot_mask", bitwidth=slot[1]),
        ],
    )
    for table in found.tables:
        if table.implementation_id == _PROFILE:
            table.implementation_id = 0
            table.action_refs.add(id=SET_ECMP_GROUP)
    found.tables.add(
        preamble=p4i.Preamble(id=ECMP_TABLE, name="ingress.ecmp", alias="ecmp"),
        match_fields=[
            p4i.MatchField(id=number, name=name, bitwidth=bits, match_type=p4i.MatchField.EXACT)
            for number, (name, bits) in enumerate((group, slot), start=1)
        ],
        action_refs=[p4i.ActionRef(id=_SET_NEXT_HOP)],
        size=_ECMP_TABLE_SIZE,
    )
    return found
