"""Reads the controller's configuration file and accepts it as a whole, or says everything that is wrong with it."""

from collections.abc import Mapping
from pathlib import Path

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from controller.config import ControllerConfig


class ConfigError(ValueError):
    """A configuration that cannot be used; ``messages`` has one line per problem: file, key path, what is wrong."""

    def __init__(self, messages: tuple[str, ...]) -> None:
        super().__init__("\n".join(messages))
        self.messages = messages


def load_config(path: Path) -> ControllerConfig:
    """The configuration in a YAML file. Raises ConfigError with all its problems."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError((f"{path}: cannot be read: {error}",)) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError((f"{path}: not YAML that can be read: {' '.join(str(error).split())}",)) from error
    try:
        return ControllerConfig.model_validate(document)
    except ValidationError as error:
        raise ConfigError(tuple(f"{path}: {_problem(fault, document)}" for fault in error.errors())) from error


def _problem(fault: ErrorDetails, document: object) -> str:
    text = {"missing": "missing; this key is required", "extra_forbidden": "unknown key"}.get(fault["type"])
    if text is None:
        text = fault["msg"].removeprefix("Value error, ").replace("Input should be", "expected", 1)
        if isinstance(fault["input"], str | int | float):
            text += f", got {fault['input']!r}"
    key_path = _key_path(fault["loc"], document)
    return f"{key_path}: {text}" if key_path else text


def _key_path(location: tuple[str | int, ...], document: object) -> str:
    """Keys and positions as the document has them: without the topology's kind, which Pydantic puts in between."""
    path = ""
    here = document
    for step in location:
        if isinstance(step, int):
            path += f"[{step}]"
            here = here[step] if isinstance(here, list) else None
        elif isinstance(here, Mapping) and step not in here and step == here.get("kind"):
            continue
        else:
            path += f".{step}"
            here = here.get(step) if isinstance(here, Mapping) else None
    return path.removeprefix(".")
