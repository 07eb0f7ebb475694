"""Packets of single ports, for other programs: sockets that send and receive them."""
