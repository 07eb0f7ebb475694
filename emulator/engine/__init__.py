"""Event loop, queues, links and host transport of an emulated fabric."""
