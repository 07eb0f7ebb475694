"""The P4Infos of both programs, as a switch of the tests may hold them."""

from finsy.proto import p4i
from google.protobuf import text_format

from p4src import P4INFO, TNA_P4INFO

ECMP_TABLE = 0x0200_0101
SET_ECMP_GROUP = 0x0100_0101


def v1model_p4info() -> p4i.P4Info:
    """That of v1model."""
    return text_format.Parse(P4INFO.read_text(), p4i.P4Info())


def tna_p4info(**sizes: int) -> p4i.P4Info:
    """That of Tofino, with other sizes of these tables."""
    found = text_format.Parse(TNA_P4INFO.read_text(), p4i.P4Info())
    for table in found.tables:
        table.size = sizes.get(table.preamble.alias, table.size)
    return found
