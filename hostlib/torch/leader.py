"""The first rank's part: it registers the job at the controller, and hears at which levels the ranks are to send."""

import atexit
import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Address

from hostlib.blocking import BlockingClient
from hostlib.errors import RefusedError
from hostlib.torch.compressed_groups import RankDirection, Share, directions_of
from hostlib.torch.report import RankReport
from hostlib.torch.settings import Settings
from hostlib.torch.sockets import Endpoints
from hostlib.torch.template import Template, addresses_of, template_of
from hostlib.types import Directives, FlowGroup, Sent

_LOG = logging.getLogger(__name__)

_LOCATES_WITHIN_S = 5.0
_ALIKE_SHARE = 0.1
"""Sizes may differ by this much before a job is registered anew, which leaves it without levels for a moment."""

Ends = tuple[str, int, str, int]
"""A connection: address, port, peer's address and port."""
Row = tuple[int, str, Ends | None, int]
"""The rank that sends, its flow group, over which connection, and the level; None: NCCL has no connections."""


class Leader:
    """Registers one job, anew where it has changed.

    Args:
        settings: The job's name, and where the controller is.
        on_levels: Called with a Plan's number, the levels of connections, and what compressing groups may count on,
            whenever there is a new Plan.
        on_note: Called with what there is to say.
    """

    def __init__(
        self,
        settings: Settings,
        on_levels: Callable[[int, Sequence[Row], Sequence[RankDirection]], None],
        on_note: Callable[[str], None],
    ) -> None:
        self.template: Template | None = None
        self.ignored_directions = 0
        self._shares: dict[str, Share] = {}
        self._settings = settings
        self._on_levels = on_levels
        self._on_note = on_note
        self._client = BlockingClient(settings.controllers, settings.owner_token, settings.credentials)
        atexit.unregister(self._client.close)  # which would come before the job is withdrawn
        self._following: threading.Thread | None = None

    def register(self, reports: Sequence[RankReport]) -> bool:
        """Register the job, or amend it where only its times have changed.

        Return whether there is something to register and the controller may be asked; False is worth another try.
        """
        try:
            found = self._client.locate_nics(addresses_of(reports), _LOCATES_WITHIN_S)
        except RefusedError as error:
            self._on_note(f"the controller refuses to say which NICs the job has: {error}")
            return False
        if found is None:
            self._on_note("no controller answers: the job is registered when one does")
            return False
        nics = {address: nic for address, nic in zip(addresses_of(reports), found, strict=True) if nic is not None}
        template = template_of(self._settings.job, reports, nics)
        if template.job is None:
            self._on_note(why_plain(template.unknown))
            return True
        if (known := self.template) is not None and known.job is not None:
            if is_alike(known.flow_groups, template.flow_groups):
                assert template.job.profile is not None
                self.template = replace(known, windows_s=template.windows_s)
                self._client.report_profile(known.job.name, template.job.profile, template.task_graph)
                return True
            self._client.deregister(known.job.name)
        self.template = template
        self._client.register_job(template.job)
        self._client.register_flow_groups(template.job.name, template.flow_groups, template.task_graph)
        self._following = threading.Thread(target=self._follow, args=(template,), name="trainyard-levels", daemon=True)
        self._following.start()
        return True

    def is_acknowledged(self) -> bool:
        """Return whether the controller knows all of the job."""
        job = None if self.template is None else self.template.job
        return job is not None and self._client.acknowledged(job.name, timeout_s=0.0)

    def refusal(self) -> str:
        """Return why the controller refuses the job; nothing where it does not."""
        job = None if self.template is None else self.template.job
        refused = None if job is None else self._client.refusal(job.name)
        return "" if refused is None else str(refused)

    def note_iteration(self, iteration: int, shares: Mapping[str, Share]) -> None:
        """Tell that an iteration begins, and what share of the bytes of process groups is sent from now on."""
        template = self.template
        self._shares |= shares
        if template is not None and template.job is not None:
            names = [group.name for group in template.flow_groups]
            self._client.start_flow_groups(template.job.name, names, iteration, sent_of(template, self._shares))

    def close(self) -> None:
        """Withdraw the job, and end all threads."""
        if self.template is not None and self.template.job is not None:
            self._client.deregister(self.template.job.name)
        self._client.close()
        if self._following is not None:
            self._following.join(timeout=3.0)

    def _follow(self, template: Template) -> None:
        """Hand on the levels of every Plan, until the job is withdrawn."""
        assert template.job is not None
        has_levels = False
        try:
            for directives in self._client.directives(template.job.name):
                rows = rows_of(template, directives)
                has_levels |= bool(rows)
                if has_levels:  # a first Plan may have been made before the flow groups were known
                    # The template may have other windows than when it was registered.
                    directions, ignored = directions_of(self.template or template, directives)
                    self.ignored_directions += ignored
                    self._on_levels(directives.plan_number, rows, directions)
        except ValueError:
            return  # the job was withdrawn before anybody followed
        except Exception:
            _LOG.exception("job %s goes on without levels", template.job.name)


def is_alike(before: Sequence[FlowGroup], now: Sequence[FlowGroup]) -> bool:
    """Return whether flow groups have the same connections, and flows of nearly the same size."""
    if [(group.name, len(group.flows)) for group in before] != [(group.name, len(group.flows)) for group in now]:
        return False
    return all(
        replace(flow, size_bytes=other.size_bytes) == other
        and abs(flow.size_bytes - other.size_bytes) <= _ALIKE_SHARE * flow.size_bytes
        for group, others in zip(before, now, strict=True)
        for flow, other in zip(group.flows, others.flows, strict=True)
    )


def sent_of(template: Template, shares: Mapping[str, Share]) -> dict[str, Sent]:
    """Return what flow groups send where these are the shares that their process groups send."""
    sent = {}
    for group in template.flow_groups:
        told = shares.get(template.process_groups.get(group.name, ""))
        if told is not None:
            sent[group.name] = Sent(round(told.share * sum(flow.size_bytes for flow in group.flows)), told.reason)
    return sent


def rows_of(template: Template, directives: Directives) -> list[Row]:
    """Return the level of every flow for which a Plan has one."""
    rows: list[Row] = []
    for directive in directives.flows:
        connection = template.connections.get((directive.flow_group, directive.flow))
        if connection is not None:
            rows.append((connection.source, directive.flow_group, _ends(connection.endpoints), directive.level))
    return rows


def _ends(found: Endpoints | None) -> Ends | None:
    if found is None:
        return None
    return str(found.address), found.port, str(found.peer_address), found.peer_port


def why_plain(unknown: Collection[IPv4Address]) -> str:
    """Return why a job without flow groups runs as it would without us, by its addresses that no NIC has."""
    if not unknown:
        return "nothing crosses the network, so the job runs plain"
    addresses = ", ".join(map(str, sorted(unknown)))
    hint = "; the loopback interface is in no fabric" if all(address.is_loopback for address in unknown) else ""
    return f"the controller knows no NIC with address {addresses}, so the job runs plain{hint}"
