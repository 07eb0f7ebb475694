"""The gRPC services of the controller: one for the host library, and one for operators."""
