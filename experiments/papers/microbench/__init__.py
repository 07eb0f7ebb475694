"""Crux's microbenchmark (section 4.4): cases, the optimum of each, and what policies reach of it."""
