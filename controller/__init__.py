"""The controller: a daemon that decides the paths and priorities of training jobs' flows, and programs the switches."""
