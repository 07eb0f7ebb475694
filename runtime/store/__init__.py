"""The object store of a host: sharded buffers behind opaque handles (Pathways, section 4.6).

Everything here is pure bookkeeping. It says what to copy and what to free; the executor that holds the bytes does it.
"""
