"""What a rule is: a small function that yields the key and the message of each way in which a store breaks one MUST."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from chronozarr_core.errors import ChronozarrError

Found = Iterator[tuple[str, str]]
"""Key and message of each finding."""

_Check = TypeVar("_Check", bound=Callable[..., Found])


class UnknownError(ChronozarrError):
    """What a rule needs is broken itself: another rule reports it, and this one says nothing."""


@dataclass(frozen=True)
class Finding:
    """One way in which a store breaks the specification.

    Attributes
    ----------
    section : of the specification, ``§2.1``
    key : the object, ``0/data/zarr.json``, or the root attribute, ``chronozarr.times[2]``
    message : what was found and what was expected
    """

    section: str
    key: str
    message: str


@dataclass(frozen=True)
class Rule:
    """One MUST.

    ``section`` is None where the thing that is judged knows its own. A store that breaks a ``structural`` rule cannot
    be walked chunk by chunk.
    """

    section: str | None
    check: Callable[..., Found]
    structural: bool

    @property
    def name(self) -> str:
        return self.check.__name__

    def findings(self, thing: Any) -> Iterator[Finding]:
        """Everything in which ``thing`` breaks the rule; nothing where its inputs are broken."""
        try:
            for key, message in self.check(thing):
                yield Finding(self.section or thing.section, key, message)
        except UnknownError:
            return


RULES: dict[type, list[Rule]] = {}
"""Every rule, by the class of the things it judges."""


def rule(section: str | None, judges: type, *, structural: bool = False) -> Callable[[_Check], _Check]:
    """Register a function that judges things of a class."""

    def register(check: _Check) -> _Check:
        RULES.setdefault(judges, []).append(Rule(section, check, structural))
        return check

    return register


class Judge:
    """Applies the rules, and keeps the findings in the order in which things were judged."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.sound = True

    def judge(self, thing: Any) -> None:
        """Apply every rule for things of this class."""
        for each in RULES[type(thing)]:
            found = list(each.findings(thing))
            self.findings += found
            self.sound = self.sound and not (found and each.structural)
