"""The role of a controller beside a client that routes: what its config names, and which requests carry it."""

from finsy import P4Schema
from finsy.proto import U128, p4r

from controller.southbound.fencing import TakeoverBarrier
from controller.southbound.p4runtime.fencing import TermArbitrator
from controller.southbound.p4runtime.roles import ROLE, RoleArbitrator, role_config
from p4src import P4INFO

_SCHEMA = P4Schema(P4INFO)


def test_the_role_names_what_is_not_base_routing_and_sets_no_pipeline() -> None:
    config = role_config(_SCHEMA)
    names = {table.id: table.alias for table in _SCHEMA.tables}
    assert {names[table] for table in config.exclusive_p4_ids} == {"level", "flow", "node_id"}
    assert {names[table] for table in config.shared_p4_ids} == {"job", "ecn"}
    assert config.receives_packet_ins
    assert not config.can_push_pipeline


def test_writes_are_in_the_role_and_reads_see_everything() -> None:
    arbitrators = (
        RoleArbitrator(7, role_config(_SCHEMA)),
        TermArbitrator(7, TakeoverBarrier(["s0"]), role_config(_SCHEMA)),
    )
    for arbitrator in arbitrators:
        write, read = p4r.WriteRequest(), p4r.ReadRequest()
        arbitrator.complete_request(write)
        arbitrator.complete_request(read)
        assert (write.role, U128.decode(write.election_id), read.role) == (ROLE, 7, "")


def test_without_a_config_everything_is_in_the_default_role() -> None:
    write = p4r.WriteRequest()
    RoleArbitrator(7).complete_request(write)
    assert (write.role, U128.decode(write.election_id)) == ("", 7)
