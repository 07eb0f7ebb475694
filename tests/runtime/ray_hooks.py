"""What workers of Ray do first in ``tests/runtime/ray_scenarios.py``."""

import os
from unittest.mock import patch

from runtime.executor import peers


def be_machines_of_their_own() -> None:
    """Let the hosts of a test take each other for hosts of other machines."""
    patch.object(peers, "this_machine", lambda: f"machine of process {os.getpid()}").start()
