import dataclasses
import re

import pytest

from runtime import messages
from runtime.codec import MalformedError
from runtime.lowering.assign import AT_CLIENT
from runtime.lowering.subprograms import lower
from tests.runtime.programs import chain
from tests.runtime.test_lowering import SLICES


def test_programs_and_subprograms_survive_the_wire() -> None:
    program = messages.RegisterProgram(3, chain(4, 2, 4), (0,))
    assert messages.decode(messages.encode(program)) == program
    lowered = lower(chain(4, 2, 4), SLICES, [AT_CLIENT])
    part = messages.LoadSubprogram(1, lowered.subprograms[0], (7,))
    assert messages.decode(messages.encode(part)) == part
    run = messages.Run(1, 2, 3, {0: 4}, ((1, 0, 5),), ((1, 2),), 8)
    assert messages.decode(messages.encode(run)) == run
    assert list(map(messages.decode, messages.encoded_runs(run, (7, 8)))) == [
        dataclasses.replace(run, subprogram=number) for number in (7, 8)
    ]
    execute = messages.Execute(1, (-1, 5), (), 10**18)
    assert messages.decode(messages.encode(execute)) == execute
    fetch = messages.FetchShard(1, 2, 3, 4, True)
    assert messages.decode(messages.encode(fetch)) == fetch
    with pytest.raises(ValueError, match="Release: "):
        messages.encode(messages.Release((1 << 64,)))


@pytest.mark.parametrize(
    ("header", "says"),
    [
        (b"", "expected a message"),
        (b"[1]", "expected a message"),
        (b'["Nothing",[]]', "there is no message 'Nothing'"),
        (b'["AskStatus",[1]]', "AskStatus: expected 2 fields"),
        (b'["AskStatus",["one",true]]', "expected int, got str"),
        (b'["AskStatus",[true,true]]', "expected int, got bool"),
        (b'["RegisterProgram",[0,1,2]]', "Program: expected"),
        (messages.encode(messages.Release((1, 2)))[:-1], "Release: expected whole words"),
        (messages.encode(messages.Release((1, 2)))[:-8], "Release: it ends too early"),
        (messages.encode(messages.Release((1, 2))) + bytes(8), "Release: it goes on after its end"),
        (b"\1" + b"\xff" * 8, "expected a length, got -1"),
        (b"\1" + b"\x7f" * 8, "Release: it ends too early"),
        (b'["RegisterFunction",[1,"f","timer",NaN,null,false]]', "duration_s: must be from 0 to 1e+06"),
        (b'["RegisterProgram",[0,["p",[[[4],"object",false]],[],[]],[]]]', "dtype: expected one of"),
        (b"[" * 100_000, "expected a message"),
    ],
)
def test_what_is_no_message_is_refused_by_name(header: bytes, says: str) -> None:
    with pytest.raises(MalformedError, match=re.escape(says)):
        messages.decode(header)
