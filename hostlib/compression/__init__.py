"""Gradient compression that adapts to the network, with a controller or without one (NetSenseML, arXiv 2506.16235)."""
