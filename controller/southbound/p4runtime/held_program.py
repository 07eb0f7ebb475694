"""Ask a connected switch which program it holds."""

from typing import Any

from finsy import GRPCStatusCode, P4ClientError, Switch
from finsy.p4schema import P4ConfigResponseType
from finsy.proto import p4r

NO_PROGRAM = "it runs no program, and this controller has none to load into it"


async def held_config(switch: Switch) -> p4r.ForwardingPipelineConfig | None:
    """Return P4Info and cookie of the program that a switch holds; None: it has none. Raises P4ClientError."""
    answer = await switch._get_pipeline_config_request(response_type=P4ConfigResponseType.P4INFO_AND_COOKIE)
    return answer.config if answer.config.HasField("p4info") else None


def hear_of_missing_programs(switch: Switch) -> None:
    """Have a switch without a program answer so, whatever its error says: finsy knows the words of some servers."""
    ask = switch._get_pipeline_config_request

    async def ask_and_understand(**options: Any) -> p4r.GetForwardingPipelineConfigResponse:
        try:
            return await ask(**options)
        except P4ClientError as error:
            if error.code is GRPCStatusCode.FAILED_PRECONDITION:
                return p4r.GetForwardingPipelineConfigResponse()
            raise

    vars(switch)["_get_pipeline_config_request"] = ask_and_understand
