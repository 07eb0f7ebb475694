"""What a run of coflows can be asked for; it imports nothing, so that a command can name it at once."""

from enum import StrEnum

BPS_PER_PORT_GBPS = 2.0**30
"""A Gbit/s of a port is 1024 * 2^20 bit/s, as CoflowSim has it."""


class CoflowPolicy(StrEnum):
    """What shares the ports: every flow alike (exact max-min), or coflows in the order of a policy."""

    FAIR = "fair"
    FIFO = "fifo"
    VARYS = "varys"
    SINCRONIA = "sincronia"


class Recompute(StrEnum):
    """When rates are set anew: as coflows come and end, or as flows end too."""

    COFLOW = "coflow"
    FLOW = "flow"
