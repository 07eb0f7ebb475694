"""Models that policies play jobs against: fluid flows on shared links, and the task graphs of iterations."""
