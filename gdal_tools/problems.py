"""Everything that is wrong with an input, reported together, each problem with its fix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chronozarr_core.errors import ChronozarrError

SHOWN = 50


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: ``where`` names the file or row, ``fix`` says what to do."""

    where: str
    what: str
    fix: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; {self.fix}"


class SourceProblemsError(ChronozarrError):
    """An input that cannot become a store; ``problems`` lists why."""

    def __init__(self, source: str, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [str(problem) for problem in problems[:SHOWN]]
        if len(problems) > SHOWN:
            lines.append(f"and {len(problems) - SHOWN} more")
        if len(lines) == 1:
            super().__init__(lines[0])
        else:
            super().__init__("\n  ".join([f"{source} has {len(problems)} problems, and nothing was written:", *lines]))


def refuse(source: str, problems: Sequence[Problem]) -> None:
    """Raise where there is any problem."""
    if problems:
        raise SourceProblemsError(source, problems)
