"""Gradient compression in virtual time: real shapes give the time, small models on real data give the accuracy."""
