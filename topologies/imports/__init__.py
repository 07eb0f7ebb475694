"""Fabric files from what other tools know: NetBox's tables of cables and containerlab's topologies."""
