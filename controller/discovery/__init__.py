"""Finds out how a fabric is really cabled, by LLDP between switches and ARP with hosts."""
