"""docs/host-library.md: the task graphs that it shows are made as it shows them."""

import re
from pathlib import Path
from typing import Any

import pytest

from hostlib import TaskGraph, Transfer

_PAGE = Path(__file__).parents[2] / "docs" / "host-library.md"


@pytest.mark.parametrize("begins_with", ["from hostlib import Computation", "from hostlib.task_graphs import"])
def test_task_graphs_are_made_as_shown(begins_with: str) -> None:
    (block,) = re.findall(rf"```python\n({re.escape(begins_with)}.*?)```", _PAGE.read_text(), re.DOTALL)
    namespace: dict[str, Any] = {}
    exec(block, namespace)
    graph = namespace["graph"]
    assert isinstance(graph, TaskGraph)
    sent = [task.flow_group for task in graph.tasks if isinstance(task, Transfer)]
    assert sent == ["late layers", "early layers"]
