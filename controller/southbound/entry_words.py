"""Entries of switches in words, as operators know them, whatever protocol the switch speaks."""

from typing import Any

from controller.southbound.openflow import entry_words as openflow
from controller.southbound.openflow.entries import FlowEntry, Group
from controller.southbound.openflow.flow_stats import HeldFlow
from controller.southbound.p4runtime import entry_words as p4runtime

_OF_OPENFLOW = (FlowEntry, Group, HeldFlow)


def kind_words(entry: Any) -> str:
    """The kind of an entry: its table, ``member`` or ``group``. Jobs bring about ``flow`` and ``job``."""
    return openflow.kind_words(entry) if isinstance(entry, _OF_OPENFLOW) else p4runtime.kind_words(entry)


def entry_words(entry: Any) -> str:
    """What an entry says, without its kind."""
    return openflow.entry_words(entry) if isinstance(entry, _OF_OPENFLOW) else p4runtime.entry_words(entry)
