"""Write a survey as a fabric file, with a comment wherever something is left to fill in. Pure functions."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from controller.discovery.survey import Survey, SurveyedHost, SurveyedPort, SurveyedSwitch
from controller.links.port_states import Port
from topologies.addressing import Address, Prefix
from topologies.names import NaturalKey, is_plain, natural_key
from topologies.targets import Target

_FILL_IN = "# fill in:"


def survey_file(survey: Survey, subnets: Sequence[Prefix] = ()) -> str:
    """Return a fabric file with what a survey has found.

    Hosts, their NICs, switches and cables are in the order of their names, numbers in names by value, so that the order
    in which they were found or listed changes no Plan. NICs at which LLDP says the same host are those of one host.

    Args:
        survey: The survey.
        subnets: Subnets that are known to be there, for the lengths of their prefixes.
    """
    survey = replace(survey, switches=tuple(sorted(survey.switches, key=lambda switch: natural_key(switch.name))))
    return "\n".join(
        ("topology:", "  kind: fabric", *_hosts(survey, subnets), *_switches(survey), *_cables(survey), "")
    )


def _hosts(survey: Survey, subnets: Sequence[Prefix]) -> Iterator[str]:
    yield "  hosts:" if survey.hosts else f"  hosts: []  {_FILL_IN} no host was heard"
    names = _host_names(survey)
    for name in dict.fromkeys(names.values()):
        ports = _ports_of(survey, names, name)
        is_known = any(survey.hosts[port].name == name for port in ports)
        yield f"    - name: {_text(name)}" + ("" if is_known else f"  {_FILL_IN} it says no name")
        yield "      nics:"
        for number, port in enumerate(ports):
            yield from _nic(survey.hosts[port], _nic_name(survey.hosts[port], number), subnets)


def _nic(host: SurveyedHost, name: str, subnets: Sequence[Prefix]) -> Iterator[str]:
    left = [] if host.nic else ["its name"]
    parts = [f"name: {_text(name)}"]
    if host.addresses:
        address = host.addresses[0]
        subnet = _subnet_of(address, subnets)
        parts.append(f"address: {address}/{24 if subnet is None else subnet.length}")
        left += ["the length of its prefix"] if subnet is None else []
        left += [f"or one of {', '.join(map(str, host.addresses[1:]))}"] if len(host.addresses) > 1 else []
    else:
        left.append("address, with the length of its prefix")
    if host.mac is not None:
        parts.append(f'mac: "{host.mac}"')
    yield f"        - {{{', '.join(parts)}}}" + (f"  {_FILL_IN} {'; '.join(left)}" if left else "")


def _switches(survey: Survey) -> Iterator[str]:
    yield "  switches:"
    silent = set(survey.silent)
    for switch in survey.switches:
        yield f"    - name: {_text(switch.name)}"
        yield f"      p4runtime: {_text(switch.address)}"
        yield f"      device_id: {switch.device_id}"
        if switch.gnmi is not None:
            yield f"      gnmi: {_text(switch.gnmi)}"
        if switch.target is not Target.BMV2:
            yield f"      target: {switch.target}"
        ports = {number: port for number, port in sorted(switch.ports.items()) if number > 0}
        yield "      ports:" if ports else f"      ports: []  {_FILL_IN} the switch tells none"
        for number, port in ports.items():
            yield _port(number, port, (switch.name, number) in silent)


def _port(number: int, port: SurveyedPort, is_silent: bool) -> str:
    speed = "" if port.gbps is None else f", gbps: {port.gbps:g}"
    silent = "  # up, and nobody was heard here" if is_silent else ""
    return f"        - {{name: {_text(port.name)}, number: {number}{speed}}}{silent}"


def _cables(survey: Survey) -> Iterator[str]:
    names = _host_names(survey)
    ends = [
        (f"{name}:{_nic_name(survey.hosts[port], number)}", port)
        for name in dict.fromkeys(names.values())
        for number, port in enumerate(_ports_of(survey, names, name))
    ]
    between = [sorted(cable, key=lambda port: _port_key(survey, port)) for cable in survey.cables]
    between.sort(key=lambda cable: [_port_key(survey, port) for port in cable])
    ends += [(_port_words(survey, one), other) for one, other in between]
    yield "  cables:" if ends else f"  cables: []  {_FILL_IN} none was found"
    for end, port in ends:
        speed = _switch(survey, port[0]).ports[port[1]].gbps
        line = f"    - {{ends: [{_text(end)}, {_text(_port_words(survey, port))}]}}"
        yield line if speed is not None else f"{line}  {_FILL_IN} gbps"
    for sender, receiver in survey.one_way:
        words = _port_words(survey, receiver), _port_words(survey, sender)
        yield f"    # {words[0]} hears {words[1]}, which hears another or nothing"


def _host_names(survey: Survey) -> dict[Port, str]:
    """Return a name for the host at each port at which no switch of ours is, in the order of these names."""
    order = {switch.name: number for number, switch in enumerate(survey.switches)}
    cabled = {port for cable in survey.cables for port in cable}
    names: dict[Port, str] = {}
    for port in sorted(survey.hosts.keys() - cabled, key=lambda port: (order[port[0]], port[1])):
        name = survey.hosts[port].name
        is_usable = bool(name) and is_plain(name) and ":" not in name and name not in order
        names[port] = name if is_usable else f"host-{len(names) + 1}"
    return dict(sorted(names.items(), key=lambda item: natural_key(item[1])))


def _ports_of(survey: Survey, names: Mapping[Port, str], name: str) -> list[Port]:
    """Return the ports of a host in the order of its NICs: of their names, where it says them."""
    ports = [port for port, its_name in names.items() if its_name == name]
    return sorted(ports, key=lambda port: (not survey.hosts[port].nic, natural_key(survey.hosts[port].nic)))


def _port_key(survey: Survey, port: Port) -> tuple[NaturalKey, NaturalKey]:
    return natural_key(port[0]), natural_key(_switch(survey, port[0]).ports[port[1]].name)


def _nic_name(host: SurveyedHost, number: int) -> str:
    return host.nic or f"nic{number}"


def _subnet_of(address: Address, subnets: Sequence[Prefix]) -> Prefix | None:
    return next((subnet for subnet in subnets if address in subnet), None)


def _port_words(survey: Survey, port: Port) -> str:
    return f"{port[0]}:{_switch(survey, port[0]).ports[port[1]].name}"


def _switch(survey: Survey, name: str) -> SurveyedSwitch:
    return next(switch for switch in survey.switches if switch.name == name)


def _text(text: str) -> str:
    """Return a text as YAML, which has the text literals of JSON."""
    return json.dumps(text, ensure_ascii=False)
