"""The parts of a controller that its gRPC services read and change."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from controller.api.calls import Calls
from controller.clock import Clock
from controller.discovery.discoverer import Discoverer
from controller.planning.directives import DirectivePublisher
from controller.planning.draining import Draining
from controller.planning.planner import Planner
from controller.profiling.measured import ProfilingResults
from controller.registry.registry import Registry
from controller.reload.progress import ReloadProgress
from controller.southbound.southbound import Southbound
from controller.telemetry.telemetry import Telemetry
from controller.watchdog import Watchdog

if TYPE_CHECKING:
    # SQLAlchemy is slow to import, and a controller without a database does not need it.
    from controller.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceContext:
    """The parts of one controller, for its services."""

    registry: Registry
    planner: Planner
    directives: DirectivePublisher
    southbound: Southbound
    telemetry: Telemetry
    draining: Draining
    """What operators have drained."""
    clock: Clock
    calls: Calls = field(default_factory=Calls)
    """The admission of calls, for all services together."""
    profiling: ProfilingResults = field(default_factory=ProfilingResults)
    store: "Store | None" = None
    """The database; None: no state outlives the process."""
    watchdog: Watchdog = field(default_factory=Watchdog)
    """How late the event loop is."""
    discoverer: Discoverer | None = None
    """What finds out cables and MACs; None: the topology is believed."""
    reloading: ReloadProgress = field(default_factory=ReloadProgress)
    """What a reload does now."""
    name: str | None = None
    """The controller's name among several; None: it is the only one."""
