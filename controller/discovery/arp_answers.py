"""Answer hosts' ARP: each switch port is the way to all other addresses. A pure function.

Every port is a link of its own that the fabric routes to. A host takes the others of its subnet for neighbours on its
link, and asks for them; the port answers for them, and for whatever address of the subnet the host has as gateway.
"""

from controller.discovery.arp_packets import NOBODY, ArpPacket
from controller.links.port_states import Port
from topologies.addressing import Address, Prefix, switch_mac
from topologies.fabric import Fabric, Nic

_MOST_TRIED = 1 << 12


def answer_to(fabric: Fabric, port: Port, nic: Nic, asked: ArpPacket) -> bytes | None:
    """Return the frame that answers the request of a NIC at its port; None where there is nothing to say.

    Requests with another sender's address are not answered, nor are probes of hosts that would like to have an address.
    """
    if asked.is_reply or asked.sender != nic.address or asked.target == nic.address:
        return None
    if asked.target not in nic.subnet and asked.target not in fabric.nic_by_address:
        return None
    mac = switch_mac(fabric.switch_index[port[0]], port[1])
    return ArpPacket(True, mac, asked.target, asked.sender_mac, asked.sender).frame(asked.sender_mac)


def asker_address(fabric: Fabric, subnet: Prefix) -> Address:
    """Return the address that a switch port asks NICs of a subnet from: the lowest that is nobody's.

    The answer would be right if the host used it. A subnet without one gives 0, with which a host tries an address
    before it has it; most answer to that too.
    """
    first = subnet.address
    for address in range(first + 1, first + min(1 << 32 - subnet.length, _MOST_TRIED) - 1):
        if address not in fabric.nic_by_address:
            return Address(address)
    return NOBODY
