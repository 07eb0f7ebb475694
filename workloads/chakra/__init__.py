"""Chakra execution traces of MLCommons, one file for each rank: read as the iteration of a job, and written."""
