"""Arrangements that can be written down: ideal finish times of a group's flows, in order of release, as offsets.

An offset is in seconds after the group's reference time, the start of its head flow, which has 0. For code that knows
its own durations and registers flow groups (``hostlib.Flow.offset_s``); it needs nothing but Python. Every other
arrangement comes from a task graph, by ``workloads.arrangement``, which these are tested against.
"""
