"""Reads the controller's configuration file and accepts it as a whole, or says everything that is wrong with it."""

from pathlib import Path

import yaml
from pydantic import ValidationError

from controller.config import ControllerConfig
from topologies.problems import problem_of_error


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
        problems = [problem_of_error(fault, document, ControllerConfig) for fault in error.errors()]
        raise ConfigError(tuple(f"{path}: {problem}" for problem in problems)) from error
