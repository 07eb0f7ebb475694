"""Crux's microbenchmark (section 4.4): random cases, the optimum of each, and the share of it that policies reach."""
