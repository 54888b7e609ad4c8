"""Print the project's requirements, extras included, but for some packages: ``requirements.py test -- rasterio``."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

PROJECT = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text(encoding="utf-8"))["project"]


def name_of(requirement: str) -> str:
    """Distribution's name, without extras and versions."""
    return re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0]


def expand(requirements: Iterable[str]) -> Iterator[str]:
    """Requirements with the project's own extras replaced by what they hold."""
    for requirement in requirements:
        if name_of(requirement) == PROJECT["name"]:
            extras = re.search(r"\[(.*)\]", requirement)
            for extra in extras[1].split(",") if extras else ():
                yield from expand(PROJECT["optional-dependencies"][extra])
        else:
            yield requirement


def main(arguments: list[str]) -> None:
    """Arguments: extras, then after ``--`` the packages to leave out."""
    split = arguments.index("--") if "--" in arguments else len(arguments)
    wanted = [*PROJECT["dependencies"]]
    for extra in arguments[:split]:
        wanted += PROJECT["optional-dependencies"][extra]
    kept = [requirement for requirement in expand(wanted) if name_of(requirement) not in arguments[split + 1 :]]
    sys.stdout.write("\n".join(kept) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
