"""Crux (Cao et al., SIGCOMM 2024): paths, priorities and levels by GPU intensity."""
