"""What a survey of a fabric finds."""

from controller.discovery.survey import Survey, SurveyedHost, SurveyedPort, SurveyedSwitch
from controller.links.port_states import Port
from topologies.fabric import Fabric


def surveyed(fabric: Fabric) -> Survey:
    """What a survey of a fabric finds where everybody speaks."""
    heard: dict[Port, Port] = {}
    hosts: dict[Port, SurveyedHost] = {}
    rates: dict[Port, float] = {}
    for link in fabric.links:
        port = link.destination, link.destination_port
        if link.destination in fabric.host_index:
            continue
        rates[port] = link.rate_bps / 1e9
        if link.source in fabric.switch_index:
            heard[port] = link.source, link.source_port
        else:
            nic = fabric.nics[link.source][link.source_port]
            hosts[port] = SurveyedHost(nic.host, nic.name, nic.mac, (nic.address,))
    switches = tuple(
        SurveyedSwitch(
            name,
            f"127.0.0.1:{9000 + number}",
            identity.device_id,
            None,
            {
                each: SurveyedPort(port_name, True, rates.get((name, each)))
                for each, port_name in dict(identity.port_names).items()
            },
        )
        for number, (name, identity) in enumerate(fabric.identity.items())
    )
    return Survey(switches, heard, hosts)
