"""The names of the policies, as scenarios, commands and Plans spell them."""

from enum import StrEnum


class PolicyName(StrEnum):
    """A policy that ``policies.catalogue`` knows."""

    ECMP = "ecmp"
    CRUX = "crux"
    CRUX_PA = "crux-pa"
    CRUX_PS_PA = "crux-ps-pa"
    FIFO = "fifo"
    VARYS = "varys"
    SINCRONIA = "sincronia"
    TACCL_STAR = "taccl-star"
    CASSINI = "cassini"
    ECHELONFLOW = "echelonflow"
    TRAINYARD = "trainyard"
