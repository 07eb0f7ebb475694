"""NCCL's part: the traffic class of communicators, and what a user's settings make of it.

NCCL opens its connections itself, and a communicator has one traffic class for life. So a level is asked for where a
communicator is made while one is known: a process group that is made late, or anew. On the way, switches mark the flows
of all others by the controller's rules. Which path an RoCE flow takes is decided by its UDP source port, which NCCL
leaves to the driver: to choose it needs a network plugin of NCCL's, or rules in switches, which need no help here.
"""

import logging
import os
from collections.abc import MutableMapping
from typing import Any

import torch
import torch.distributed as dist

_LOG = logging.getLogger(__name__)

_LEVEL_SHIFT = 5
"""A level is a class selector, the three highest bits of the octet that NCCL writes into IP headers."""
_PER_COMMUNICATOR_SINCE = (2, 26)
_OVERRIDING = ("NCCL_IB_TC", "NCCL_IB_SL")


class TrafficClasses:
    """Has communicators that are about to be made send at a level, unless the user has chosen.

    Args:
        version: NCCL's. Before 2.26 a level holds for all communicators that the process makes from then on.
        environment: Where NCCL reads its settings; what the user has set there overrides every level.
    """

    def __init__(self, version: tuple[int, ...], environment: MutableMapping[str, str] = os.environ) -> None:
        self._version = version
        self._environment = environment
        self._is_users = False
        for name in _OVERRIDING:
            if environment.get(name):
                self._is_users = True
                _LOG.warning(
                    "%s is set to %s: NCCL sends at this class, whatever the controller decides",
                    *(name, environment[name]),
                )

    def ask(self, options: Any, level: int) -> None:
        """Ask for a level, 0 to 7, in the options of a communicator: a ``ProcessGroupNCCL.Options``."""
        if self._is_users:
            return
        octet = level << _LEVEL_SHIFT
        config: Any = getattr(options, "config", None)
        if self._version < _PER_COMMUNICATOR_SINCE:
            self._environment["NCCL_IB_TC"] = str(octet)
        elif hasattr(config, "traffic_class"):
            config.traffic_class = octet
        else:
            _LOG.info("this PyTorch gives communicators no traffic class: switches mark their flows")


def traffic_classes() -> TrafficClasses | None:
    """Return those of this process; None where its PyTorch has no NCCL."""
    if not dist.is_nccl_available():
        return None
    return TrafficClasses(torch.cuda.nccl.version())


def options_of_a_communicator() -> Any:
    """Return the options of a communicator that was given none."""
    return dist.ProcessGroupNCCL.Options()
