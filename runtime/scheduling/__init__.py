"""Gang scheduling: one consistent order per island over the computations of all programs (Pathways, section 4.4).

Everything here is pure: time is an argument, and nothing reads or writes outside.
"""
