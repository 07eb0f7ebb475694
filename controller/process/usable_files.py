"""Check the files and packages that a configuration needs, as a start of the controller would; TLS checks its own."""

from collections.abc import Iterator
from pathlib import Path

from controller.access.authenticator import authenticator
from controller.access.reloading_file import UnusableFileError
from controller.config import ControllerConfig
from controller.southbound.openflow.error_words import MissingLibraryError, constants
from controller.southbound.openflow.messages import Version
from controller.southbound.p4runtime.programs import files_of


def unusable_files(config: ControllerConfig) -> Iterator[str]:
    """Yield a line for every file or package that cannot be used, which begins with its key."""
    for key, tokens, jwt in (("tokens", config.tokens, None), ("jwt", None, config.jwt)):
        try:
            authenticator(tokens, jwt)
        except UnusableFileError as error:
            yield f"{key}: {error}"
    if config.openflow_addresses:
        try:
            constants(Version.OPENFLOW_1_3)
        except MissingLibraryError as error:
            yield f"switches: {error}"
    identity = config.topology.build().identity
    targets = {identity[address.name].target for address in config.p4runtime_addresses}
    for name in sorted({name for target in targets for name in files_of(target) if name is not None}):
        if not (config.pipeline / name).is_file():
            yield f"pipeline: {config.pipeline} has no {name}"
    if config.device_config is not None and (problem := _problem_of(config.device_config)):
        yield f"device_config: {problem}"


def _problem_of(file: Path) -> str:
    if not file.is_file():
        return f"there is no file {file}"
    try:
        with file.open("rb") as opened:
            return "" if opened.read(1) else f"{file} is empty"
    except OSError as error:
        return f"{file} cannot be read: {error.strerror}"
