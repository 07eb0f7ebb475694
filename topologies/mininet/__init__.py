"""Mininet networks whose switches are Trainyard's emulator.

The modules run in two places: in Debian's Python, which ``mn`` starts and which has nothing but the standard library
and Mininet, and in Trainyard's own environment, where ``loading`` finds Mininet.
"""
