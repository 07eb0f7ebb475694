"""Print what the two distributions need, as requirements, so that an image keeps it while only the sources change."""

import tomllib
from pathlib import Path

_EXTRAS = ("postgresql", "report")

for file in (Path("hostlib/pyproject.toml"), Path("pyproject.toml")):
    project = tomllib.loads(file.read_text())["project"]
    further = [each for extra in _EXTRAS for each in project.get("optional-dependencies", {}).get(extra, ())]
    for requirement in (*project["dependencies"], *further):
        if not requirement.startswith("trainyard"):
            print(requirement)
