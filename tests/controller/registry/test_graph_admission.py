"""Task graphs are admitted with flow groups or with a profile, and refused by the field."""

from collections import deque
from dataclasses import replace

import pytest

from controller.access.options import UNLIMITED
from controller.registry import graph_admission, usage
from controller.registry.errors import (
    CommitError,
    ConflictError,
    ExhaustedError,
    InvalidFieldError,
    RegistrationError,
    UnknownJobError,
)
from controller.registry.registry import Registry
from controller.registry.requests import (
    FlowGroupRequest,
    FlowRequest,
    JobRequest,
    NicReference,
    TaskGraphRequest,
    TransferRequest,
)
from policies.job import Profile
from policies.task_graph import Computation, TaskGraph, Transfer
from topologies.fabric import Fabric

PROFILE = Profile(1.0, 0.5, 1.0)
FLOW = FlowRequest(NicReference("h0", 0), NicReference("h2", 0), 1_000, 0.0)
A, B = FlowGroupRequest("a", (FLOW,)), FlowGroupRequest("b", (FLOW, FLOW))
GRAPH = TaskGraphRequest(
    (Computation(0.5), TransferRequest("b", (1,), (0,)), TransferRequest("a"), TransferRequest("b", (0,)))
)
ADMITTED = TaskGraph((Computation(0.5), Transfer((2,), (0,)), Transfer((0,)), Transfer((1,))))


def graph_of(*tasks: Computation | TransferRequest) -> TaskGraphRequest:
    """A graph of these tasks behind a computation."""
    return TaskGraphRequest((Computation(0.5), *tasks))


def known(registry: Registry) -> TaskGraph | None:
    """The graph of the job."""
    job = registry.job("gpt")
    assert job is not None
    return job.task_graph


@pytest.fixture
def filled(registry: Registry) -> Registry:
    registry.register_job(JobRequest("gpt", ("h0", "h2"), 2, PROFILE), 0.0)
    return registry


def test_flows_are_numbered_group_after_group(filled: Registry) -> None:
    filled.register_flow_groups("gpt", [A])
    assert known(filled) is None
    assert filled.register_flow_groups("gpt", [B], GRAPH)[0]
    assert known(filled) == ADMITTED


def test_the_same_again_changes_nothing_and_another_graph_replaces_the_one_before(filled: Registry) -> None:
    assert filled.register_flow_groups("gpt", [A, B], GRAPH)[0]
    first = filled.job("gpt")
    assert not filled.register_flow_groups("gpt", [A, B], GRAPH)[0]
    assert not filled.register_flow_groups("gpt", [A, B])[0]
    assert not filled.report_profile("gpt", PROFILE, admitted(filled, GRAPH))
    assert filled.job("gpt") is first
    assert filled.register_flow_groups("gpt", [A, B], replace(GRAPH, is_guessed=True))[0]
    assert known(filled) == replace(ADMITTED, is_guessed=True)
    assert filled.report_profile("gpt", PROFILE, admitted(filled, GRAPH))
    assert known(filled) == ADMITTED
    assert filled.report_profile("gpt", replace(PROFILE, work=2.0))
    assert known(filled) == ADMITTED


def admitted(registry: Registry, request: TaskGraphRequest) -> graph_admission.GraphAdmission:
    """The admission of a graph of the job."""
    admission = registry.admitting("gpt", request)
    admission.admit()
    return admission


def test_groups_that_a_graph_does_not_send_drop_it(filled: Registry) -> None:
    filled.register_flow_groups("gpt", [A, B], GRAPH)
    filled.register_flow_groups("gpt", [A, FlowGroupRequest("c", (FLOW,))])
    assert known(filled) is None


@pytest.mark.parametrize(
    ("graph", "problem"),
    [
        (graph_of(Computation(float("nan"))), r"tasks\[1\]\.duration_s: must be at most 1e\+06, not nan"),
        (graph_of(Computation(2e6)), r"tasks\[1\]\.duration_s: must be at most 1e\+06, not 2000000"),
        (graph_of(Computation(0.0)), r"tasks\[1\]\.duration_s: must be positive"),
        (graph_of(Computation(1.0, (1,))), r"tasks\[1\]\.after: a task waits for earlier ones"),
        (graph_of(TransferRequest("a", (), (3,))), r"tasks\[1\]\.after: a task waits for earlier ones"),
        (graph_of(TransferRequest("c")), r"tasks\[1\]\.flow_group: the job has none named 'c'"),
        (graph_of(TransferRequest("b", (1, 2))), r"tasks\[1\]\.flows: flow group 'b' has flows 0 to 1, not 2"),
        (graph_of(TransferRequest("b", (1, 1))), r"tasks\[1\]\.flows: a flow is sent once"),
        (graph_of(TransferRequest("a"), TransferRequest("a")), r"tasks\[2\]\.flows: a flow is sent once"),
        (
            graph_of(TransferRequest("a"), TransferRequest("b", (0,))),
            "tasks: no transfer sends flow 1 of flow group 'b'",
        ),
        (TaskGraphRequest((TransferRequest("a"), TransferRequest("b"))), "tasks: an iteration must compute something"),
        (TaskGraphRequest((Computation(0.1),) * 100_001), "tasks: a job has room for 100,000, not for 100,001"),
        (graph_of(Computation(0.1, (0,) * 1_000_001)), "tasks: a job has room for 1,000,000 dependencies"),
    ],
)
def test_a_graph_is_refused_by_the_field_and_nothing_is_registered(
    filled: Registry, graph: TaskGraphRequest, problem: str
) -> None:
    with pytest.raises(InvalidFieldError, match=rf"^task_graph\.{problem}"):
        filled.register_flow_groups("gpt", [A, B], graph)
    assert filled.job("gpt").flow_groups == ()
    filled.register_flow_groups("gpt", [A, B], GRAPH)
    with pytest.raises(InvalidFieldError, match=rf"^task_graph\.{problem}"):
        admitted(filled, graph)
    assert known(filled) == ADMITTED


def test_a_job_whose_traffic_is_measured_tells_no_graph(filled: Registry) -> None:
    filled.register_job(JobRequest("silent", ("h1", "h3"), 2, None), 0.0)
    with pytest.raises(ConflictError, match="reports no profile"):
        filled.register_flow_groups("silent", [], graph_of())
    filled.register_flow_groups("gpt", [], graph_of())
    with pytest.raises(ConflictError, match="must report its profile"):
        filled.register_job(JobRequest("gpt", ("h0", "h2"), 2, None), 1.0)


def test_a_graph_is_that_of_the_job_and_groups_it_was_admitted_for(filled: Registry) -> None:
    with pytest.raises(UnknownJobError):
        filled.admitting("bert", GRAPH)
    filled.register_flow_groups("gpt", [A, B])
    admission = admitted(filled, GRAPH)
    filled.register_flow_groups("gpt", [FlowGroupRequest("c", (FLOW,))])
    with pytest.raises(CommitError, match="are not stored"):
        filled.report_profile("gpt", PROFILE, admission)
    filled.deregister("gpt")
    filled.register_job(JobRequest("gpt", ("h0", "h2"), 2, PROFILE), 5.0)
    with pytest.raises(UnknownJobError, match="has been registered anew"):
        filled.report_profile("gpt", PROFILE, admission)
    assert known(filled) is None


def test_tenants_have_room_for_so_many_tasks(fabric: Fabric, monkeypatch: pytest.MonkeyPatch) -> None:
    quotas = UNLIMITED.model_copy(update={"tasks": 5})
    registry = Registry(fabric, 30.0, quotas_of=lambda tenant: quotas if tenant else UNLIMITED)
    for name, tenant in (("gpt", "vision"), ("bert", "vision"), ("other", "")):
        registry.register_job(JobRequest(name, ("h0", "h2"), 2, PROFILE), 0.0, tenant=tenant)
        registry.register_flow_groups(name, [A])
    three = graph_of(TransferRequest("a"), Computation(1.0))
    registry.register_flow_groups("gpt", [A], three)
    _refused(registry, "bert", three, "quota tasks: tenant 'vision' may have 5, this would be 6")
    registry.register_flow_groups("bert", [A], graph_of(TransferRequest("a")))
    registry.register_flow_groups("gpt", [A], graph_of(TransferRequest("a")))
    monkeypatch.setattr(usage, "MAX_TASKS_OF_ALL", 6)
    _refused(registry, "other", three, "no room for more than 6 altogether")
    registry.deregister("bert")
    registry.register_flow_groups("other", [A], three)


def _refused(registry: Registry, job: str, graph: TaskGraphRequest, problem: str) -> None:
    registration = registry.registering(job, [A], graph)
    deque(registration.steps(), maxlen=0)
    registration.admit_graph()
    with pytest.raises(RegistrationError, match=problem) as refused:
        registration.finish()
    assert isinstance(refused.value, ExhaustedError)
    registration.cancel()
