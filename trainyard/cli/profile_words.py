"""Where the profile of a job is from, in words."""

from controller.api.operations import operations_pb2 as wire


def profile_words(profile: wire.ProfileState) -> str:
    """Told, or how far measuring it has come and what came of it."""
    if profile.source != wire.MEASURED:
        return wire.ProfileSource.Name(profile.source).lower().replace("_", " ")
    return (
        f"measured {profile.age_s:.0f} s ago, {profile.iterations} iterations of {profile.period_s:.3g} s,"
        f" {profile.transfer_s:.3g} s of transfer"
    )
