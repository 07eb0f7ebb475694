"""The server: one process that knows all islands, lowers programs, orders computations and keeps clients' accounts."""
