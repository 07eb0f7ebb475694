"""Registered jobs: what they ask for, their leases and source ports, and how changes become durable."""
