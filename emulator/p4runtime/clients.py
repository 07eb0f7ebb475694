"""The clients of one device: roles, bids, and the primary of each role (P4Runtime specification, section 5)."""

from collections import defaultdict
from collections.abc import Callable, Iterator

from finsy.proto import U128, p4r, rpc_code, rpc_status

from emulator.p4runtime.arbitration import Arbitration, ElectionIdInUseError
from emulator.p4runtime.errors import (
    failed_precondition,
    invalid_argument,
    not_found,
    permission_denied,
    resource_exhausted,
)
from emulator.p4runtime.roles import ALL, DEFAULT_ROLE, Permissions, permissions_of

Send = Callable[[p4r.StreamMessageResponse], None]

MAX_CONTROLLERS = 32
MAX_ROLES = 16
"""A role is remembered as long as its device, with the highest election id that it has seen."""


class Clients:
    """The streams of one device; each belongs to the role of its first bid."""

    def __init__(self, device_id: int) -> None:
        self._device_id = device_id
        self._arbitrations: defaultdict[str, Arbitration] = defaultdict(Arbitration)
        self._permissions: dict[str, Permissions] = {DEFAULT_ROLE: ALL}
        self._roles: dict[str, p4r.Role] = {}
        self._streams: dict[int, tuple[str, Send]] = {}

    def bid(self, stream: int, role: p4r.Role, election_id: int | None, send: Send) -> None:
        """Make a stream's bid and notify all streams that it concerns.

        A primary's config becomes that of its role, and all are told of it. Raises RequestError; the stream must then
        end: INVALID_ARGUMENT if another stream of the role has the id or the config is not understood,
        FAILED_PRECONDITION if the stream has another role, RESOURCE_EXHAUSTED if MAX_CONTROLLERS others have made bids,
        or there are MAX_ROLES other roles.
        """
        if stream not in self._streams and len(self._streams) >= MAX_CONTROLLERS:
            raise resource_exhausted(f"device {self._device_id} has {MAX_CONTROLLERS} controllers already")
        if stream in self._streams and self._streams[stream][0] != role.name:
            raise failed_precondition(f"the stream belongs to role {self._streams[stream][0]!r}")
        if role.name not in self._permissions and len(self._permissions) >= MAX_ROLES:
            raise resource_exhausted(f"device {self._device_id} has {MAX_ROLES} roles already")
        live = {name: self._permissions[name] for name, _ in self._streams.values()}
        permissions = permissions_of(role, live)
        try:
            arbitration, informed = self._arbitrations[role.name].bid(stream, election_id)
        except ElectionIdInUseError as error:
            raise invalid_argument(f"{error} on device {self._device_id}") from None
        self._arbitrations[role.name] = arbitration
        if arbitration.primary == stream or role.name not in self._permissions:
            self._permissions[role.name] = permissions
        if arbitration.primary == stream and role.name != DEFAULT_ROLE:
            self._roles[role.name] = role
        self._streams[stream] = role.name, send
        self._inform(role.name, informed)

    def leave(self, stream: int) -> None:
        """Remove a stream that has made a bid."""
        role, _ = self._streams.pop(stream)
        self._arbitrations[role], informed = self._arbitrations[role].leave(stream)
        self._inform(role, informed)

    def permissions(self, role: str) -> Permissions:
        """Return what a role may do. Raises RequestError, NOT_FOUND, for one that nobody has bid for."""
        try:
            return self._permissions[role]
        except KeyError:
            raise not_found(f"there is no role {role!r} on device {self._device_id}") from None

    def require_primary(self, election_id: int | None, role: str) -> Permissions:
        """Return what a role may do, if this is its primary's election id. Raises RequestError, PERMISSION_DENIED."""
        permissions = self.permissions(role)
        arbitration, where = self._arbitrations[role], self._where(role)
        if arbitration.primary is None:
            raise permission_denied(f"{where} has no primary controller")
        if election_id != arbitration.highest_id:
            raise permission_denied(f"election id {election_id} is not that of the primary controller of {where}")
        return permissions

    def require_stream_of_primary(self, stream: int) -> None:
        """Raise RequestError, PERMISSION_DENIED, unless a stream is that of the primary of its role."""
        role = self._streams[stream][0] if stream in self._streams else DEFAULT_ROLE
        if self._arbitrations[role].primary != stream:
            raise permission_denied(f"a PacketOut is for the primary controller of {self._where(role)} alone")

    def receivers(self, entity: p4r.Entity) -> Iterator[Send]:
        """Iterate over the primaries whose roles include an entity."""
        return (send for permissions, send in self.primaries() if permissions.covers(entity))

    def primaries(self) -> Iterator[tuple[Permissions, Send]]:
        """Iterate over the primaries of all roles."""
        for role, arbitration in self._arbitrations.items():
            if arbitration.primary is not None:
                yield self._permissions[role], self._streams[arbitration.primary][1]

    def _where(self, role: str) -> str:
        return f"device {self._device_id}" + (f" in role {role!r}" if role else "")

    def _inform(self, role: str, streams: tuple[int, ...]) -> None:
        for stream in streams:
            self._streams[stream][1](p4r.StreamMessageResponse(arbitration=self._advisory(role, stream)))

    def _advisory(self, role: str, stream: int) -> p4r.MasterArbitrationUpdate:
        primary, highest_id = self._arbitrations[role].primary, self._arbitrations[role].highest_id
        if primary is None:
            status = rpc_status.Status(code=rpc_code.NOT_FOUND, message="there is no primary controller")
        elif primary == stream:
            status = rpc_status.Status(code=rpc_code.OK, message="you are the primary controller")
        else:
            status = rpc_status.Status(code=rpc_code.ALREADY_EXISTS, message="you are a backup controller")
        return p4r.MasterArbitrationUpdate(
            device_id=self._device_id,
            role=self._roles.get(role, p4r.Role(name=role)) if role else None,
            election_id=None if highest_id is None else U128.encode(highest_id),
            status=status,
        )
