"""Evaluations of the papers, measured anew: one module each, with what was published beside what comes out here."""
