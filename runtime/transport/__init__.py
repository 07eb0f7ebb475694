"""Messages and tuples between the processes of a runtime: over TCP, and through shared memory on one host.

Executors do not use it yet: they talk in ``runtime.frames``, which knows neither shared memory nor places to receive
into. ``benchmarks/runtime_transport.py`` measures it.

- ``framing``: frames on a stream, and the decoder that cuts a stream into them; pure.
- ``rendezvous``: which tuple goes where, whichever side speaks first; pure.
- ``handshake``: both ends of a connection prove that they know the token, before anything else is read.
- ``shared_memory``: segments of memory that processes of one host map.
- ``arena``: where buffers lie in a segment.
- ``tcp``: addresses, and connections for messages, which never block.
- ``bulk``: connections for large tuples, which have threads of their own.
- ``peer``: another process: messages to it, tuples to and from it.
- ``endpoint``: what a process has: peers, and the thread in which it hears from them.
"""
