"""The wire format: ``trainyard/v1/trainyard.proto``, what protoc makes of it, and the methods by name."""
