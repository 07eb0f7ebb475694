"""Settings of a bridge of Open vSwitch without which its controller does not decide alone what is forwarded.

- ``fail_mode`` has to be ``secure``: a bridge that has lost its controller otherwise becomes a learning switch.
- In-band control has to be off: otherwise hidden flow entries, more urgent than any of ours, forward ARP and DHCP.

See ovs-vswitchd.conf.db(5).
"""

import asyncio
from dataclasses import dataclass
from typing import Any

from controller.errors import DaemonError
from controller.southbound.openflow.ovsdb import NOT_OVSDB, Ovsdb, OvsdbError, connected_ovsdb, pairs, values
from topologies.printable import printable

_SECURE = "secure"
_DISABLE_IN_BAND = "disable-in-band"
_OUT_OF_BAND = "out-of-band"
_TAKES_EFFECT_WITHIN_S = 10.0
_LOOK_S = 0.05


class UnsafeBridgeError(DaemonError):
    """A bridge would forward by itself what nobody has decided; the text names it and each setting."""


@dataclass(frozen=True, slots=True)
class BridgeSettings:
    """What a bridge does besides what its controller has written.

    Attributes:
        name: What Open vSwitch calls it.
        fail_mode: ``secure``, ``standalone`` or, the same, None.
        is_in_band: Whether in-band control may add flow entries.
    """

    name: str
    fail_mode: str | None
    is_in_band: bool

    @property
    def problems(self) -> tuple[str, ...]:
        """What is not as it has to be, each with the command that sets it."""
        found = []
        if self.fail_mode != _SECURE:
            mode = "standalone" if self.fail_mode is None else printable(self.fail_mode)
            set_it = f"ovs-vsctl set-fail-mode {printable(self.name)} {_SECURE}"
            found.append(f"fail_mode is {mode}, by which it forwards on its own without a controller: {set_it}")
        if self.is_in_band:
            set_it = f"ovs-vsctl set bridge {printable(self.name)} other-config:{_DISABLE_IN_BAND}=true"
            found.append(f"in-band control is on, by which hidden flow entries forward ARP and DHCP: {set_it}")
        return tuple(found)


async def require_safe(address: str, datapath_id: int, *, configure: bool) -> tuple[str, ...]:
    """Check the settings of a bridge, or set them; return what has been set, in words.

    Args:
        address: Where the database answers: ``unix:PATH`` or ``tcp:HOST:PORT``.
        datapath_id: The bridge's.
        configure: Whether to set what is not as it has to be.

    Raises:
        UnsafeBridgeError: The bridge is not there, or a setting is not as it has to be and is not to be set.
        OvsdbError: The database does not answer, or refuses.
    """
    async with connected_ovsdb(address) as database:
        try:
            identity, settings = await _settings(database, datapath_id)
        except (IndexError, KeyError, TypeError, ValueError):  # other tables, or columns of other types
            raise OvsdbError(NOT_OVSDB) from None
        if not settings.problems:
            return ()
        if not configure:
            raise UnsafeBridgeError(f"bridge {printable(settings.name)}: {'; '.join(settings.problems)}")
        await _set_safe(database, identity)
        return tuple(f"{name} of bridge {printable(settings.name)} is set" for name in _names(settings))


def _names(settings: BridgeSettings) -> list[str]:
    is_set = {f"fail_mode={_SECURE}": settings.fail_mode != _SECURE, f"{_DISABLE_IN_BAND}=true": settings.is_in_band}
    return [name for name, was_needed in is_set.items() if was_needed]


async def _settings(database: Ovsdb, datapath_id: int) -> tuple[str, BridgeSettings]:
    """Return the identity of a bridge's row, and its settings."""
    columns = ["_uuid", "name", "fail_mode", "other_config", "controller"]
    where = [["datapath_id", "==", f"{datapath_id:016x}"]]
    bridges, controllers = await database.transact(
        {"op": "select", "table": "Bridge", "where": where, "columns": columns},
        {"op": "select", "table": "Controller", "where": [], "columns": ["_uuid", "connection_mode"]},
    )
    rows: list[dict[str, Any]] = bridges["rows"]
    if len(rows) != 1:
        names = ", ".join(printable(str(row["name"])) for row in rows)
        how_many = f"{len(rows)} bridges have it: {names}" if rows else "no bridge has it"
        raise UnsafeBridgeError(f"datapath id {datapath_id:#x}: {how_many}")
    (row,) = rows
    own = {identity for _, identity in values(row["controller"])}
    modes = [values(each["connection_mode"]) for each in controllers["rows"] if each["_uuid"][1] in own]
    is_off = pairs(row["other_config"]).get(_DISABLE_IN_BAND) == "true"
    is_in_band = not is_off and (not modes or any(mode != [_OUT_OF_BAND] for mode in modes))
    (fail_mode,) = values(row["fail_mode"]) or [None]
    return row["_uuid"][1], BridgeSettings(row["name"], fail_mode, is_in_band)


async def _set_safe(database: Ovsdb, identity: str) -> None:
    """Make the settings of a bridge what they have to be; return when they have taken effect."""
    where = [["_uuid", "==", ["uuid", identity]]]
    in_band_off = [
        ["other_config", "delete", ["set", [_DISABLE_IN_BAND]]],
        ["other_config", "insert", ["map", [[_DISABLE_IN_BAND, "true"]]]],
    ]
    count = {"op": "mutate", "table": "Open_vSwitch", "where": [], "mutations": [["next_cfg", "+=", 1]]}
    read = {"op": "select", "table": "Open_vSwitch", "where": [], "columns": ["next_cfg", "cur_cfg"]}
    *_, wanted = await database.transact(
        {"op": "update", "table": "Bridge", "where": where, "row": {"fail_mode": _SECURE}},
        {"op": "mutate", "table": "Bridge", "where": where, "mutations": in_band_off},
        count,
        read,
    )
    try:
        async with asyncio.timeout(_TAKES_EFFECT_WITHIN_S):
            while (await database.transact(read))[0]["rows"][0]["cur_cfg"] < wanted["rows"][0]["next_cfg"]:
                await asyncio.sleep(_LOOK_S)
    except TimeoutError:
        raise UnsafeBridgeError(f"the settings have not taken effect in {_TAKES_EFFECT_WITHIN_S:g} s") from None
