"""``trainyard policies``."""


def policies() -> None:
    """List the registered policies: name, the distribution that it comes from, and what it does."""
    from policies.registry import PolicyError, find_policy, registrations

    found = registrations()
    names, sources = (
        max(map(len, column), default=0) for column in ([of.name for of in found], [of.distribution for of in found])
    )
    for registered in found:
        try:
            summary = find_policy(registered.name).summary
        except PolicyError as error:
            summary = f"cannot be used: {error}"
        print(f"{registered.name:{names}}  {registered.distribution:{sources}}  {summary}")
