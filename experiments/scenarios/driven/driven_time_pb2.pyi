from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SettleRequest(_message.Message):
    __slots__ = ("time_s", "switches_down", "ports_down")
    TIME_S_FIELD_NUMBER: _ClassVar[int]
    SWITCHES_DOWN_FIELD_NUMBER: _ClassVar[int]
    PORTS_DOWN_FIELD_NUMBER: _ClassVar[int]
    time_s: float
    switches_down: _containers.RepeatedScalarFieldContainer[str]
    ports_down: PortsDown
    def __init__(self, time_s: _Optional[float] = ..., switches_down: _Optional[_Iterable[str]] = ..., ports_down: _Optional[_Union[PortsDown, _Mapping]] = ...) -> None: ...

class PortsDown(_message.Message):
    __slots__ = ("ports",)
    PORTS_FIELD_NUMBER: _ClassVar[int]
    ports: _containers.RepeatedCompositeFieldContainer[SwitchPort]
    def __init__(self, ports: _Optional[_Iterable[_Union[SwitchPort, _Mapping]]] = ...) -> None: ...

class SwitchPort(_message.Message):
    __slots__ = ("switch", "port")
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    switch: str
    port: int
    def __init__(self, switch: _Optional[str] = ..., port: _Optional[int] = ...) -> None: ...

class SettleResponse(_message.Message):
    __slots__ = ("plan_number", "next_timer_s", "num_rules")
    PLAN_NUMBER_FIELD_NUMBER: _ClassVar[int]
    NEXT_TIMER_S_FIELD_NUMBER: _ClassVar[int]
    NUM_RULES_FIELD_NUMBER: _ClassVar[int]
    plan_number: int
    next_timer_s: float
    num_rules: int
    def __init__(self, plan_number: _Optional[int] = ..., next_timer_s: _Optional[float] = ..., num_rules: _Optional[int] = ...) -> None: ...
