"""Topologies: fabrics as graphs, their routing and ECMP hash, and the addresses of hosts."""
