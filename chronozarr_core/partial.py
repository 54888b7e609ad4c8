"""A store being written: ``OUT.partial`` with a journal of finished groups, and the rename that makes it ``OUT``."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from chronozarr_core.errors import ChronozarrError
from chronozarr_core.groups import GroupResult
from chronozarr_core.layout import ROOT
from chronozarr_core.locking import FileLock
from chronozarr_core.model import Json, TemporalEncoding
from chronozarr_core.storage import LocalStorage, StorageError, read_json, to_json_bytes

JOURNAL = ".encode"
LOCK = "lock"
PLAN_KEY = f"{JOURNAL}/plan.json"


def check_output(out: Path) -> None:
    """Raise unless a store may be written at ``out``: it is absent or an empty folder, in a folder that exists."""
    try:
        taken = out.is_dir() and any(out.iterdir())
        is_file = not out.is_dir() and (out.exists() or out.is_symlink())
    except OSError as error:
        raise StorageError(f"cannot look at {out}: {error.strerror}") from error
    if taken:
        raise ChronozarrError(f"{out} exists and is not empty: choose another path, or remove it first")
    if is_file:
        raise ChronozarrError(f"{out} is a file: a store is a folder; choose another path")


class PartialStore:
    """The folder ``OUT.partial``, locked by the one process that writes it."""

    def __init__(self, out: Path) -> None:
        check_output(out)
        self.out = out
        self.path = out.with_name(out.name + ".partial")
        self.storage = LocalStorage(self.path)
        self._lock = FileLock(self.path / JOURNAL / LOCK)

    def start(self, fingerprint: Json, resume: bool) -> TemporalEncoding | None:
        """Make the folder, or take up an interrupted one; return the encoding that the interrupted run chose, if any.

        Raises
        ------
        ChronozarrError
            An interrupted run is there and ``resume`` is not asked for, or it had other data or options, or another
            process is writing it. What is there stays.
        """
        if self.path.exists() and not resume and not self._is_written():
            raise ChronozarrError(
                f"{self.path} is left from an interrupted run: continue it with --resume, or remove the folder"
            )
        if not self._is_ours():
            raise ChronozarrError(f"{self.path} is not what an interrupted run leaves: move it elsewhere, or remove it")
        try:
            (self.path / JOURNAL).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"cannot create {self.path}: {error.strerror}") from error
        if not self._lock.acquire():
            raise ChronozarrError(f"{self.path} is being written by another process: wait for it to end")
        try:
            return self._agreed_temporal(fingerprint)
        except ChronozarrError:
            self.leave()
            raise

    def _is_written(self) -> bool:
        """Whether another process is writing the folder now."""
        if not (self.path / JOURNAL).is_dir():
            return False
        free = self._lock.acquire()
        self._lock.release()
        return not free

    def _is_ours(self) -> bool:
        """Whether there is nothing, or what a run leaves that was killed at whatever moment."""
        if not self.path.is_dir() or (self.path / JOURNAL).is_dir() or (self.path / ROOT).is_file():
            return True
        return not any(self.path.iterdir())

    def _agreed_temporal(self, fingerprint: Json) -> TemporalEncoding | None:
        recorded = read_json(self.storage, PLAN_KEY)
        if recorded is None:
            self._clear()
            return None
        plain = json.loads(to_json_bytes(fingerprint))
        if recorded["fingerprint"] != plain:
            changed = sorted(name for name in plain if recorded["fingerprint"].get(name) != plain[name])
            raise ChronozarrError(
                f"{self.path} was begun with other {', '.join(changed)}: run the same command as before, "
                "or remove the folder and start again"
            )
        return TemporalEncoding.from_json(recorded["temporal"])

    def _clear(self) -> None:
        """Remove all but the lock: without a plan, nothing says of what data and options the rest is."""
        for path in (*self.path.iterdir(), *(self.path / JOURNAL).iterdir()):
            if path.name in (LOCK, JOURNAL):
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def record_plan(self, fingerprint: Json, temporal: TemporalEncoding) -> None:
        self._record(PLAN_KEY, {"fingerprint": fingerprint, "temporal": temporal.to_json()})

    def record_group(self, result: GroupResult) -> None:
        """From here on the group is a restart point."""
        sums = result.sums.astype(str).tolist()  # text, since a sum may be infinite and JSON has no such number
        document = {
            "sums": sums,
            "dtype": result.sums.dtype.name,
            "objects": result.objects,
            "nbytes": result.nbytes,
        }
        self._record(f"{JOURNAL}/group-{result.anchor}.json", document)

    def finished_group(self, anchor: int) -> GroupResult | None:
        document = read_json(self.storage, f"{JOURNAL}/group-{anchor}.json")
        if document is None:
            return None
        sums = np.array(document["sums"]).astype(document["dtype"])
        return GroupResult(anchor, sums, document["objects"], document["nbytes"])

    def _record(self, key: str, document: dict[str, Any]) -> None:
        """Write by rename: a journal entry is there whole or not at all."""
        self.storage.put(f"{key}.new", to_json_bytes(document))
        (self.path / f"{key}.new").replace(self.path / key)

    def write(self, objects: Iterable[tuple[str, bytes]]) -> int:
        """Write objects in order; return how many."""
        count = 0
        for key, value in objects:
            self.storage.put(key, value)
            count += 1
        return count

    def publish(self) -> None:
        """Drop the journal and rename to ``OUT``: until here no reader can see the store."""
        self._lock.release()
        shutil.rmtree(self.path / JOURNAL)
        try:
            if self.out.is_dir():
                self.out.rmdir()
            self.path.rename(self.out)
        except OSError as error:
            raise StorageError(
                f"cannot rename {self.path} to {self.out}: {error.strerror}; the store is whole, rename it yourself"
            ) from error

    def discard(self) -> None:
        """Remove everything that was written."""
        self._lock.release()
        shutil.rmtree(self.path, ignore_errors=True)

    def leave(self) -> None:
        """Keep what was written, for a run that resumes."""
        self._lock.release()
