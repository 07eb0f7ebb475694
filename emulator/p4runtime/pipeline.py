"""A forwarding pipeline: a P4Info and the program that it describes, checked against each other."""

from dataclasses import dataclass

from finsy.proto import p4i, p4r
from google.protobuf import text_format

from emulator.p4runtime.agreement import agreed
from emulator.p4runtime.device_config import DeviceConfig, read_device_config
from emulator.p4runtime.errors import invalid_argument
from emulator.p4runtime.schema import Schema, read_schema


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A checked pipeline of a controller; ``message`` is its original message."""

    message: p4r.ForwardingPipelineConfig
    schema: Schema
    program: DeviceConfig

    def is_same_as(self, other: "Pipeline") -> bool:
        """Return whether both have the same program and P4Info, whatever their cookies."""
        return self.program.digest == other.program.digest and self.message.p4info == other.message.p4info

    def part(
        self, response_type: p4r.GetForwardingPipelineConfigRequest.ResponseType.ValueType
    ) -> p4r.ForwardingPipelineConfig:
        """Return the fields that a GetForwardingPipelineConfig asks for; the cookie is always included."""
        request = p4r.GetForwardingPipelineConfigRequest
        wanted = p4r.ForwardingPipelineConfig()
        wanted.CopyFrom(self.message)
        if response_type in (request.COOKIE_ONLY, request.DEVICE_CONFIG_AND_COOKIE):
            wanted.ClearField("p4info")
        if response_type in (request.COOKIE_ONLY, request.P4INFO_AND_COOKIE):
            wanted.ClearField("p4_device_config")
        return wanted


def load_pipeline(message: p4r.ForwardingPipelineConfig) -> Pipeline:
    """Check a pipeline.

    Raises RequestError: INVALID_ARGUMENT for a missing or corrupt part, or a P4Info that does not agree with the BMv2
    JSON; UNIMPLEMENTED for a P4Info that this server does not support.
    """
    if not message.HasField("p4info"):
        raise invalid_argument("the pipeline has no P4Info")
    if not message.p4_device_config:
        raise invalid_argument("the pipeline has no device config")
    schema = read_schema(message.p4info)
    program = read_device_config(message.p4_device_config)
    return Pipeline(message, agreed(schema, program), program)


def compiled_pipeline(p4info_text: str, device_config: bytes) -> Pipeline:
    """Return the pipeline of p4c's outputs: P4Info in text form and BMv2 JSON. Raises RequestError as above."""
    try:
        p4info = text_format.Parse(p4info_text, p4i.P4Info())
    except (text_format.ParseError, ValueError, RecursionError) as error:
        raise invalid_argument(f"the P4Info is not one in text form: {error}") from None
    return load_pipeline(p4r.ForwardingPipelineConfig(p4info=p4info, p4_device_config=device_config))
