"""The gRPC services of the controller: hosts register with one, operators ask the other."""
