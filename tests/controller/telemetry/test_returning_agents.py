"""Agents that were all gone while a link was silent, and come back."""

from experiments.scenarios.probing import agent_of
from hostlib.telemetry.prober import Pace
from tests.controller.telemetry.probed import ProbedFabric
from topologies.specification import ClosSpecification

PACE = Pace(refresh_s=0.02)


def test_a_link_that_is_mended_while_all_agents_are_gone_is_heard_when_it_is_tried_again() -> None:
    fabric = ClosSpecification(
        kind="clos", tors=2, aggs=2, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100
    ).build()
    probed = ProbedFabric(fabric, pace=PACE, stale_after_s=0.2)
    nics = {host: fabric.nics[host][0] for host in fabric.hosts}
    probed.watch([(nics[source], nics[destination]) for source in ("h0", "h1") for destination in ("h2", "h3")])
    probed.run_until_complete(at_most_s=1.0)
    probed.run(probed.now_s + 0.1)
    [uplink, *_] = [link.index for link in fabric.links_from["t0"] if link.destination == "a0"]
    cable = {uplink, fabric.reverse(uplink)}

    def set_cable(up: bool) -> None:
        for link in cable:
            probed.emulated.set_link(link, up=up)

    set_cable(up=False)
    probed.run(probed.now_s + 0.6)
    silent = probed.telemetry.silent_links
    assert uplink in silent
    probed.telemetry.reroute(cable)
    probed.probing.agents.clear()
    probed.run(probed.now_s + 1.0)
    probed.probing.agents |= {host: agent_of(fabric, host, session=2, pace=PACE) for host in fabric.hosts}
    # Tried again while it is still dead, then mended.
    for is_mended in (False, True):
        set_cable(up=is_mended)
        probed.telemetry.reroute(frozenset())
        probed.run(probed.now_s + 0.5)
        assert probed.telemetry.silent_links == (frozenset() if is_mended else silent)
        if not is_mended:
            probed.telemetry.reroute(cable)
            probed.run(probed.now_s + 0.5)
            assert probed.telemetry.silent_links == silent
    # Hosts speak less often while nothing is to be found.
    probed.run_until_complete(probed.now_s + 1.0)
