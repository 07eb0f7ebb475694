"""What a client asks by gNMI to enable or disable a port, and the names that ports have there."""

from finsy.proto import gnmi


def interface_name(switch: str, port: int) -> str:
    """Return the name of a port: its switch's name and its number."""
    return f"{switch}-eth{port}"


def port_request(switch: str, port: int | str, *, is_enabled: bool) -> gnmi.SetRequest:
    """Return the request that sets ``config/enabled`` of a port, which its number or its own name says."""
    request = gnmi.SetRequest(prefix=gnmi.Path(target=switch))
    update = request.update.add(val=gnmi.TypedValue(bool_val=is_enabled))
    update.path.elem.add(name="interfaces")
    name = interface_name(switch, port) if isinstance(port, int) else port
    update.path.elem.add(name="interface", key={"name": name})
    update.path.elem.add(name="config")
    update.path.elem.add(name="enabled")
    return request
