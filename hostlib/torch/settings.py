"""What ``attach`` is to do: from its arguments, else from the environment, else found out."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

from hostlib import checks
from hostlib.addresses import listed_addresses
from hostlib.credentials import Credentials

_SCHEDULERS = (
    ("SLURM_JOB_ID", "slurm"),
    ("TORCHELASTIC_RUN_ID", "torchrun"),
    ("JOB_COMPLETION_INDEX", "kubernetes"),
)
"""Variables of schedulers that start jobs, and what a job of theirs is called."""
_WITHOUT_ID = ("", "none")
"""torchrun calls a run ``none`` that was given no id."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a process takes part in its job.

    Attributes:
        controllers: Addresses of the controller, HOST:PORT or unix:/PATH; none: nothing is registered.
        job: The job's name.
        credentials: How to speak with the controller.
        owner_token: To whom the job belongs; None: to this run of it.
        profile_iterations: Over so many iterations the profile is measured.
        prints_iterations: Whether the first rank prints how long each iteration takes.
        trace_folder: Where a measured iteration of each rank is recorded; None: nowhere.
    """

    controllers: tuple[str, ...]
    job: str
    credentials: Credentials
    owner_token: str | None = None
    profile_iterations: int = 5
    prints_iterations: bool = False
    trace_folder: str | None = None

    @classmethod
    def found(
        cls,
        controller: str | None = None,
        job: str | None = None,
        credentials: Credentials | None = None,
        profile_iterations: int = 5,
        trace_folder: str | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> "Settings":
        """Return settings from arguments and, for what is None, from the environment.

        ``TRAINYARD_CONTROLLER`` is the address, or several with commas between; ``TRAINYARD_JOB`` the job's name, by
        default the script's with the id that Slurm or torchrun gave the run; ``TRAINYARD_OWNER_TOKEN`` its owner. With
        ``TRAINYARD_PRINT_ITERATIONS``, the first rank prints iterations. ``TRAINYARD_TRACE_FOLDER`` is where each rank
        records an iteration.

        Raises:
            ValueError: An address, a name or a credential cannot be used.
        """
        given = controller or environment.get("TRAINYARD_CONTROLLER", "")
        return cls(
            controllers=listed_addresses(given),
            job=checks.name("job", job or environment.get("TRAINYARD_JOB") or default_job(environment)),
            credentials=credentials or Credentials.from_environment(),
            owner_token=environment.get("TRAINYARD_OWNER_TOKEN") or None,
            profile_iterations=checks.integer("profile_iterations", profile_iterations, 1, 1000),
            prints_iterations=bool(environment.get("TRAINYARD_PRINT_ITERATIONS")),
            trace_folder=trace_folder or environment.get("TRAINYARD_TRACE_FOLDER") or None,
        )


def default_job(environment: Mapping[str, str]) -> str:
    """Return the name of a job that was given none: its script's, and the id of its run where a scheduler gave one."""
    script = PurePath(sys.argv[0]).stem if sys.argv and sys.argv[0] else "python"
    for variable, scheduler in _SCHEDULERS:
        identity = environment.get(variable, "")
        if identity not in _WITHOUT_ID:
            return f"{script}-{scheduler}-{identity}".replace("/", "-")[: checks.MAX_NAME_LENGTH]
    return script
