"""A single-controller runtime for programs over islands of accelerators (Pathways; Barham et al., MLSys 2022)."""
