"""PyTorch jobs register themselves: one line in a training script, or none.

    import hostlib.torch

    hostlib.torch.attach()

sees every collective of the process from then on, registers with the controller at ``TRAINYARD_CONTROLLER`` what the
job sends in an iteration, and marks its connections with the levels that the controller decides. ``python -m hostlib
run train.py`` does the same for a script as it is. Without a controller the job runs as it would without us.
"""

import atexit
import logging
import os
from collections.abc import Sequence
from typing import Any

import torch.distributed as dist

from hostlib.credentials import Credentials
from hostlib.torch.network_address import choose_interface
from hostlib.torch.process_groups import ROLES
from hostlib.torch.session import Session
from hostlib.torch.settings import Settings
from hostlib.torch.statistics import State, Statistics
from hostlib.torch.tee import SIZES

__all__ = ["State", "Statistics", "annotate", "attach", "detach", "note_collective", "stats"]

_LOG = logging.getLogger(__name__)

_session: Session | None = None
_attachments = 0
_last = Statistics(State.PLAIN, "", note="nothing is attached")


def attach(
    controller: str | None = None,
    job: str | None = None,
    *,
    credentials: Credentials | None = None,
    profile_iterations: int = 5,
    trace_folder: str | None = None,
) -> None:
    """Observe this process and register its job. Call it before ``init_process_group``; again, it does nothing.

    It raises nothing: what is wrong is logged once, and the job runs on. After ``detach`` a process may attach again,
    if all ranks do.

    Args:
        controller: HOST:PORT or unix:/PATH, or several with commas between; None: ``TRAINYARD_CONTROLLER``.
        job: The job's name; None: ``TRAINYARD_JOB``, else the script's, with the id of its run.
        credentials: How to speak with the controller; None: those of the environment.
        profile_iterations: Over so many iterations the profile is measured. The job is registered after two.
        trace_folder: Where each rank records the last of these iterations, as a file ``trace.RANK.jsonl`` that
            ``type: chakra`` plays; None: ``TRAINYARD_TRACE_FOLDER``, else nowhere.
    """
    global _session, _attachments, _last  # one session per process, as there is one torch.distributed
    if _session is not None:
        return
    try:
        choose_interface()
        settings = Settings.found(controller, job, credentials, profile_iterations, trace_folder)
        _session = Session(settings, _attachments)
    except Exception as error:
        _LOG.warning("Trainyard cannot be attached, and the job runs without: %s", error)
        _last = Statistics(State.PLAIN, "", note=str(error))
        return
    _attachments += 1
    atexit.register(detach)


def detach() -> None:
    """Withdraw the job and observe this process no more. It is done at the interpreter's end."""
    global _session, _last  # see attach
    session, _session = _session, None
    if session is not None:
        atexit.unregister(detach)
        _last = session.statistics()
        session.close()


def note_collective(
    operation: str,
    size_bytes: int,
    *,
    group: Any = None,
    peer: int | None = None,
    splits_bytes: Sequence[int] = (),
) -> None:
    """Tell of a collective that PyTorch's dispatcher does not see, where it begins; nothing happens if not attached.

    That is one of symmetric memory, of a library that calls NCCL itself, or of a CUDA graph, at each replay. ::

        hostlib.torch.note_collective("allreduce_", gradients.nbytes)
        graph.replay()

    Args:
        operation: What moves the bytes, as an operation of c10d: ``allreduce_``, ``_allgather_base_``, ``send``, ….
        size_bytes: As ``hostlib.torch.algorithms.Collective`` has it.
        group: The process group whose ranks take part; None: all.
        peer: The other rank's, or the root's, number in the group.
        splits_bytes: What an all-to-all sends to each rank of the group.

    Raises:
        ValueError: There is no such operation.
    """
    if operation not in SIZES:
        raise ValueError(f"operation: expected one of {', '.join(SIZES)}, got {operation!r:.100}")
    if _session is not None:
        name = (dist.group.WORLD if group is None else group).group_name
        _session.recorder.issued(operation, name, (size_bytes, peer, tuple(splits_bytes)))


def annotate(group: Any, role: str) -> None:
    """Say what a process group is for, where its name in a device mesh and its operations do not.

    Raises:
        ValueError: It is none of data, sharded, tensor, pipeline, expert, context, other.
    """
    if role not in ROLES:
        raise ValueError(f"role: expected one of {', '.join(ROLES)}, got {role!r:.100}")
    if _session is not None:
        _session.groups.roles[group.group_name] = role


def stats() -> Statistics:
    """Return what the network has done for the job so far, after ``detach`` what it had until then.

    The state is ``plain`` where nothing was attached.
    """
    return _last if _session is None else _session.statistics()


def _forget_in_child() -> None:
    """A forked child, such as a data loader's worker, is not the job."""
    global _session  # see attach
    session, _session = _session, None
    if session is not None:
        session.abandon()


os.register_at_fork(after_in_child=_forget_in_child)
