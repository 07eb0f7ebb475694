"""Traces of single packets through an emulated fabric."""
