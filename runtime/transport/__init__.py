"""Shared memory of the processes of one machine: what an executor lends to others, without copying it.

- ``shared_memory``: segments of memory that processes map.
- ``arena``: which ranges of a segment are free.
- ``arrays``: NumPy arrays whose data lie in an arena.

``runtime.executor.peers`` says to other executors where such arrays lie. Over TCP it sends their data.
"""
