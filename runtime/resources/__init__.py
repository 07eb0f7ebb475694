"""The resource manager: islands of hosts of devices, and virtual slices of them (Pathways, section 4.1).

Everything here is pure: the manager decides who computes where, and others act on what it says.
"""
