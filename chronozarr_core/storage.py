"""Objects by key: what a store needs of the place it lies in."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any, Protocol

from chronozarr_core.errors import ChronozarrError, CorruptStoreError


class StorageError(ChronozarrError):
    """The place a store lies in cannot be read or written: no space, no permission, a failing disk."""


class Storage(Protocol):
    """A place that returns objects by key."""

    @property
    def location(self) -> str:
        """What a person calls the place: a path or URL."""
        ...

    def get(self, key: str) -> bytes | None:
        """The object's bytes, or None where there is none."""
        ...


class LocalStorage:
    """A folder; keys are relative paths with ``/``."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def location(self) -> str:
        return str(self.root)

    def get(self, key: str) -> bytes | None:
        try:
            with (self.root / key).open("rb") as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except OSError as error:
            raise StorageError(f"cannot read {self.root / key}: {error.strerror}") from error

    def put(self, key: str, value: bytes) -> None:
        """Write an object whole, making its folder where needed.

        Raises
        ------
        StorageError
            The file cannot be written; the message names it and the reason.
        """
        path = self.root / key
        try:
            try:
                file = path.open("wb")
            except FileNotFoundError:
                path.parent.mkdir(parents=True, exist_ok=True)
                file = path.open("wb")
            with file:
                file.write(value)
        except OSError as error:
            raise StorageError(_write_failure(path, error)) from error


def _write_failure(path: Path, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"no space left to write {path} ({error.strerror}): free some, or write the store elsewhere"
    return f"cannot write {path}: {error.strerror}"


def read_json(storage: Storage, key: str) -> dict[str, Any] | None:
    """The JSON object at a key, or None where there is none.

    Raises
    ------
    CorruptStoreError
        The object is not a JSON object.
    """
    raw = storage.get(key)
    if raw is None:
        return None
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise CorruptStoreError(f"{storage.location}/{key} is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise CorruptStoreError(f"{storage.location}/{key} holds a JSON {type(document).__name__}: expected an object")
    return document


def to_json_bytes(document: dict[str, Any]) -> bytes:
    """Strict JSON, no NaN."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
