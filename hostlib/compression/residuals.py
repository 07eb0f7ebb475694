"""What was not sent yet, by parameter: error feedback and momentum correction.

Error feedback adds to a step's gradient what earlier steps left out (Seide et al. 2014; Karimireddy et al. 2019).
Momentum correction accumulates the momentum before it chooses what to send, so that gradients that are sent late still
count as the momentum that they would have had (Lin et al. 2018, section 3.1). An element that is sent forgets both
("momentum factor masking", section 3.2).
"""

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from hostlib import checks

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Section:
    """One parameter's part of a flat buffer: its name, and how many elements it has."""

    name: str
    size: int


Sections = tuple[Section, ...]


class Residuals:
    """Unsent gradients of one rank, in fp32, by parameter.

    A buffer of a few parameters is read and written as a whole; where the next one has other parameters, as after DDP
    has rebuilt its buckets, each takes its part along.

    Args:
        momentum: Of the momentum correction, 0 to below 1. With more than 0 the optimizer must have none of its own.

    Raises:
        ValueError: The momentum is none.
    """

    def __init__(self, momentum: float = 0.0) -> None:
        self.momentum = checks.number("momentum", momentum)
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum: expected 0 to below 1, got {momentum}")
        self._scale = 1.0
        self._unsent = _Flats()
        self._velocity = _Flats()

    @property
    def size_bytes(self) -> int:
        """Memory that is held now."""
        return self._unsent.size_bytes + self._velocity.size_bytes

    def is_empty(self, sections: Sections) -> bool:
        """Whether a gradient of these sections is sent as it is where all of it is sent."""
        return not self.momentum and not self._unsent.has(sections)

    def held(self, sections: Sections, device: torch.device) -> "Held":
        """Return what is kept of these sections, to be changed in place: zeros where nothing was."""
        return Held(
            self._unsent.made(sections, device), self._velocity.made(sections, device) if self.momentum else None
        )

    def taken(self, sections: Sections, gradient: torch.Tensor) -> torch.Tensor:
        """Return all that there is to send, in fp32, and keep none of it: for where all is sent.

        Args:
            sections: The parameters of the gradient, in order.
            gradient: Of one dimension and any floating type. It is not changed.
        """
        total = gradient.to(torch.float32, copy=True)
        if self.momentum:
            total = self._velocity.made(sections, gradient.device).mul_(self.momentum).add_(total).clone()
        unsent = self._unsent.flat(sections)
        self._unsent.remove(sections)
        return total if unsent is None else total.add_(unsent)

    def rescale(self, scale: float) -> None:
        """Follow the scale of a GradScaler, by which the next gradients are multiplied.

        Raises:
            ValueError: The scale is not positive, or not finite.
        """
        _check_scale(scale)
        if scale != self._scale:
            for flats in (self._unsent, self._velocity):
                flats.multiply(scale / self._scale)
            self._scale = scale

    def state_dict(self, world_size: int) -> dict[str, Any]:
        """Return what a checkpoint of this rank needs: tensors by parameter, and what they mean."""
        return {
            "world_size": world_size,
            "scale": self._scale,
            "momentum": self.momentum,
            "unsent": self._unsent.by_name(),
            "velocity": self._velocity.by_name(),
        }

    def load_state_dict(
        self, state: Mapping[str, Any], sizes: Mapping[str, int] | None, world_size: int
    ) -> tuple[str, ...]:
        """Take a checkpoint's place; return what could not be kept, in words, which are logged too.

        A rank's unsent gradients are its share of a mean over the ranks that there were. Where their number is another
        one, all are reset. So are those of parameters that are gone, or have another size.

        Args:
            state: What ``state_dict`` returned.
            sizes: Elements of each parameter of the model, by name; None: they are not known, and not compared.
            world_size: How many ranks there are now.

        Raises:
            ValueError: The state has not the form of ``state_dict``. Nothing is changed then.
        """
        try:
            before, scale = int(state["world_size"]), float(state["scale"])
            saved = [
                {str(name): value.detach() for name, value in state[key].items()} for key in ("unsent", "velocity")
            ]
            _check_scale(scale)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"state: expected what state_dict() returned: {error!r}") from error
        lost: list[str] = []
        if before != world_size:
            lost.append(f"unsent gradients are reset: they were of {before} ranks, and there are {world_size}")
            saved = [{}, {}]
        if sizes is not None:
            for what, values in zip(("unsent gradient", "momentum"), saved, strict=True):
                lost.extend(f"{what} of {reset}" for reset in _without_others(values, sizes))
        self._unsent, self._velocity = (_Flats(values) for values in saved)
        if not self.momentum:
            self._velocity = _Flats()
        self._scale = scale
        for line in lost:
            _LOG.warning("%s", line)
        return tuple(lost)


@dataclass(frozen=True, slots=True)
class Held:
    """Flat fp32 tensors of a few parameters: what was not sent, and the momentum that is being corrected, if any."""

    unsent: torch.Tensor
    velocity: torch.Tensor | None


class _Flats:
    """Flat tensors, each of the parameters of one buffer."""

    def __init__(self, values: Mapping[str, torch.Tensor] | None = None) -> None:
        self._of: dict[str, tuple[Sections, torch.Tensor]] = {}
        for name, value in (values or {}).items():
            self._of[name] = (Section(name, value.numel()),), value.reshape(-1).to(torch.float32, copy=True)

    @property
    def size_bytes(self) -> int:
        return sum(flat.nbytes for flat in self._distinct())

    def has(self, sections: Sections) -> bool:
        return any(section in self._known(section.name) for section in sections)

    def flat(self, sections: Sections) -> torch.Tensor | None:
        """Return one tensor of these sections; None if none of them has any."""
        if not self.has(sections):
            return None
        known, flat = self._of.get(sections[0].name, ((), None))
        if known == sections and all(self._of[section.name][1] is flat for section in sections):
            return flat
        values = [self._value(section) for section in sections]
        like = next(value for value in values if value is not None)
        return torch.cat(
            [
                like.new_zeros(each.size) if value is None else value
                for each, value in zip(sections, values, strict=True)
            ]
        )

    def made(self, sections: Sections, device: torch.device) -> torch.Tensor:
        """Return one tensor of these sections that is kept, zeros where there was nothing."""
        flat = self.flat(sections)
        if flat is None:
            flat = torch.zeros(sum(section.size for section in sections), device=device)
        flat = flat.to(device)
        for section in sections:
            self._of[section.name] = (sections, flat)
        return flat

    def remove(self, sections: Sections) -> None:
        for section in sections:
            self._of.pop(section.name, None)

    def multiply(self, factor: float) -> None:
        for flat in self._distinct():
            flat.mul_(factor)

    def by_name(self) -> dict[str, torch.Tensor]:
        found = {}
        for name, (sections, _) in self._of.items():
            (own,) = (section for section in sections if section.name == name)
            value = self._value(own)
            if value is not None:
                found[name] = value.clone()
        return found

    def _known(self, name: str) -> Sections:
        return self._of[name][0] if name in self._of else ()

    def _value(self, wanted: Section) -> torch.Tensor | None:
        """Return a parameter's part; None if it has none, or one of another size."""
        start = 0
        for section in self._known(wanted.name):
            if section == wanted:
                return self._of[wanted.name][1][start : start + section.size]
            start += section.size
        return None

    def _distinct(self) -> list[torch.Tensor]:
        return list({id(flat): flat for _, flat in self._of.values()}.values())


def _without_others(values: dict[str, torch.Tensor], sizes: Mapping[str, int]) -> list[str]:
    """Take out what belongs to no parameter of these sizes; return what that was, and why, in words."""
    lost = []
    for name, value in list(values.items()):
        size = sizes.get(name)
        if size is None:
            lost.append(f"{name} is reset: there is no such parameter")
        elif size != value.numel():
            lost.append(f"{name} is reset: it had {value.numel()} elements, and has {size}")
        else:
            continue
        del values[name]
    return lost


def _check_scale(scale: float) -> None:
    if not (scale > 0 and math.isfinite(scale)):
        raise ValueError(f"scale: expected a positive finite number, got {scale}")
