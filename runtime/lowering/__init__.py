"""From a location-free program to what each host runs: devices, transfers, subprograms. Pure: no I/O and no clock."""
