"""The wire format: ``trainyard.proto``, its generated messages, and the service's methods by name."""
