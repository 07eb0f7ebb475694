"""Options of a coflow run. This module imports nothing heavy, so that a command starts quickly."""

from enum import StrEnum

BPS_PER_PORT_GBPS = 2.0**30
"""CoflowSim's Gbit/s: 1024 * 2^20 bit/s."""


class CoflowPolicy(StrEnum):
    """Sharing of the ports: exact max-min over flows, or coflows in the order of a policy."""

    FAIR = "fair"
    FIFO = "fifo"
    VARYS = "varys"
    SINCRONIA = "sincronia"


class Recompute(StrEnum):
    """When rates are recomputed: when coflows arrive and end, or also when flows end."""

    COFLOW = "coflow"
    FLOW = "flow"
