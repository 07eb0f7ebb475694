"""In-band telemetry at hosts: sending probes, and parsing those that arrive."""

from hostlib.telemetry.parsing import Malformed, MalformedProbeError, ReceivedProbe, parse_probe
from hostlib.telemetry.probes import Mark, Probe, probe_packet
from hostlib.wire.int_md import Hop

__all__ = [
    "Hop",
    "Malformed",
    "MalformedProbeError",
    "Mark",
    "Probe",
    "ReceivedProbe",
    "parse_probe",
    "probe_packet",
]
