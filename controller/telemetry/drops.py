"""Why a report of a probe is not believed."""

from enum import StrEnum


class Drop(StrEnum):
    """The reasons, in the order in which they are looked for; the first four drop all reports of an exchange."""

    NOT_OWNER = "another agent speaks for the reporter's host"
    REPLAYED_EXCHANGE = "the exchange was told before"
    TOO_MANY = "more reports in an exchange than are allowed"
    HOST_CLOCK = "the reporter's clock has jumped"
    NOT_ITS_HOST = "the probe went to another host than the reporter's"
    NOT_WANTED = "no job has a flow between its NICs"
    SOURCE_PORT = "no host was told to probe from its source port"
    TOO_OLD = "older than what may be late"
    OLD_SESSION = "of a session of the sender that has ended"
    REPLAYED = "its number has been reported before"
    NUMBER_JUMP = "its number is far ahead of all before"
    SENDER_CLOCK = "the sender's clock has jumped"
    STACK = "the stack is not of whole hops, or has none"
    UNKNOWN_SWITCH = "a hop is no switch of the topology"
    NOT_ADJACENT = "no cable leads from one hop to the next"
    NOT_A_CANDIDATE = "not a path that ECMP allows"
    HOP_TIMES = "a hop's times and latency contradict each other"
