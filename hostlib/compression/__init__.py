"""Gradient compression that adapts to the network, with a controller or without one (NetSenseML, arXiv 2506.16235).

::

    model = DistributedDataParallel(model)
    NetSense().attach(model)

``NetSense`` needs PyTorch, and is imported when it is asked for: the controllers and codecs do without it.
"""

from typing import TYPE_CHECKING, Any

from hostlib.compression.control.budget import BudgetSettings
from hostlib.compression.control.paper import PaperParameters

if TYPE_CHECKING:
    from hostlib.compression.netsense import NetSense

__all__ = ["BudgetSettings", "NetSense", "PaperParameters"]


def __getattr__(name: str) -> Any:
    if name == "NetSense":
        from hostlib.compression.netsense import NetSense

        return NetSense
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
