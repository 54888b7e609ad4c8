"""Decoded chunks kept for the next read."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Any

from numpy.typing import NDArray


class ChunkCache:
    """Decoded anchor chunks, the least recently used dropped first."""

    def __init__(self, limit: int) -> None:
        self._limit, self._nbytes = limit, 0
        self._chunks: OrderedDict[str, NDArray[Any]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: str) -> NDArray[Any] | None:
        with self._lock:
            if key in self._chunks:
                self._chunks.move_to_end(key)
            return self._chunks.get(key)

    def put(self, key: str, chunk: NDArray[Any]) -> None:
        with self._lock:
            if key not in self._chunks:
                self._chunks[key] = chunk
                self._nbytes += chunk.nbytes
            while self._nbytes > self._limit and len(self._chunks) > 1:
                self._nbytes -= self._chunks.popitem(last=False)[1].nbytes
