"""The process of a host: it holds arrays, runs what is granted in order, and sends results to other hosts."""
