"""The P4Runtime role of a controller beside a client that fills base routing.

The role's config is Stratum's, which lists by their P4Info ids the tables that a role may write. Reads are not limited
to them: base routing is read to plan with it.
"""

from finsy import P4Schema
from finsy.p4arbitrator import Arbitrator
from finsy.pbutil import PBMessage
from finsy.proto import p4r, stratum

from controller.southbound.p4runtime.entries import OWN_TABLES_BESIDE_OTHERS, TABLES_SHARED_WITH_OPERATORS

ROLE = "trainyard"


def role_config(schema: P4Schema) -> stratum.P4RoleConfig:
    """Return the config of the role: what it writes, that it receives packets, and that it sets no pipeline."""
    tables = schema.tables
    return stratum.P4RoleConfig(
        exclusive_p4_ids=[tables[name].id for name in OWN_TABLES_BESIDE_OTHERS],
        shared_p4_ids=[tables[name].id for name in TABLES_SHARED_WITH_OPERATORS],
        receives_packet_ins=True,
    )


class RoleArbitrator(Arbitrator):
    """Arbitration in a role, or in the default role without a config; reads are in the default role."""

    def __init__(self, election_id: int, config: stratum.P4RoleConfig | None = None) -> None:
        super().__init__(election_id, "" if config is None else ROLE, config)

    def complete_request(self, msg: PBMessage) -> None:
        """Add role and election id to a request that has them."""
        if not isinstance(msg, p4r.ReadRequest):
            super().complete_request(msg)
