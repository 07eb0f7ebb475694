"""What a run of coflows can be asked for; it imports nothing, so that a command can name it at once."""

from enum import StrEnum


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
