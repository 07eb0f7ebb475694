"""Generated code, by version of the protocol."""
