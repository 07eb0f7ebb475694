"""Loads and compiles a policy before a Plan needs it, as no decision may wait for that."""

import asyncio
from functools import partial

from controller.background import run_in_thread
from controller.config import ControllerConfig
from controller.errors import DaemonError
from controller.planning.warm_up import warm_up
from policies.policy import Policy
from policies.registry import PolicyError, load_policy
from topologies.routing import Routing

_LIMIT_S = 120.0


class UnreadyPolicyError(DaemonError):
    """A policy cannot be loaded, or fails in its warm-up; the message names it."""


async def ready_policy(config: ControllerConfig, routing: Routing) -> Policy:
    """Return the policy of a configuration, loaded and compiled. Raises UnreadyPolicyError."""
    try:
        async with asyncio.timeout(_LIMIT_S):
            return await run_in_thread(partial(_ready, config, routing), "policy")
    except PolicyError as error:
        raise UnreadyPolicyError(str(error)) from error
    except (Exception, SystemExit) as error:  # the code of a policy may raise anything
        problem = f"{config.policy} has failed in its warm-up: {type(error).__name__}: {error}"
        raise UnreadyPolicyError(problem) from error


def _ready(config: ControllerConfig, routing: Routing) -> Policy:
    policy = load_policy(config.policy)
    warm_up(policy, routing, config.num_levels)
    return policy
