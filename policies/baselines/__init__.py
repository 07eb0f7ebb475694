"""Baselines: the policies that Crux, EchelonFlow and trainyard are compared with."""
