"""Every MUST of the specification that an unsharded store can break, as one small rule each (§2 to §8)."""

from __future__ import annotations

import os
from pathlib import Path

from chronozarr_core.errors import CorruptStoreError, StoreNotFoundError
from chronozarr_core.layout import ROOT
from chronozarr_core.progress import Progress
from chronozarr_core.storage import LocalStorage, Storage, read_json
from chronozarr_core.validate import array_rules, root_rules  # noqa: F401 - importing them registers their rules
from chronozarr_core.validate.content import Walk
from chronozarr_core.validate.rules import RULES, Finding, Judge, Rule, UnknownError
from chronozarr_core.validate.subject import Subject, each

__all__ = ["RULES", "Finding", "Rule", "validate"]


def validate(
    store: str | os.PathLike[str] | Storage, *, content: bool = True, progress: Progress | None = None
) -> list[Finding]:
    """Check a store against the specification, and return everything in which it breaks it.

    Parameters
    ----------
    store : folder of the store, or the storage it lies in
    content : decode every chunk and compare every level with the one below; otherwise documents, coordinates and
        volatility only. Chunks are not read while the documents leave open what they hold
    progress : told the strips of timesteps done and their total

    Returns
    -------
    list of :class:`Finding`, empty for a conforming store. A rule whose inputs are broken is skipped, since the
    finding of the rule they break says it; so mend and validate again.

    Raises
    ------
    StoreNotFoundError
        There is no ``zarr.json``.
    """
    storage = LocalStorage(Path(store)) if isinstance(store, str | os.PathLike) else store
    try:
        root = read_json(storage, ROOT)
    except CorruptStoreError as error:
        return [Finding("§2", ROOT, f"{error}: expected the root group's document")]
    if root is None:
        raise StoreNotFoundError(f"no chronozarr store at {storage.location}: there is no {ROOT}")
    subject, judge = Subject(storage, root), Judge()
    for thing in (subject, *_parts(subject)):
        judge.judge(thing)
    if content and judge.sound:
        _walk(subject, judge, progress)
    return judge.findings


def _parts(subject: Subject) -> list[object]:
    parts: list[object] = []
    for listed in each(lambda subject: [*subject.groups, *subject.arrays], [subject]):
        parts += listed
    return parts


def _walk(subject: Subject, judge: Judge, progress: Progress | None) -> None:
    try:
        walk = Walk(subject, judge, progress)
    except UnknownError:
        return
    walk.run()
