"""Small stores and series that the core's tests share."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chronozarr_core import ArraySeries, ChronoStore, EncodeOptions, RasterGrid, Strip, encode_series, open_store
from chronozarr_core.storage import LocalStorage

CRS = "EPSG:32631"
TRANSFORM = (10.0, 0.0, 746090.0, 0.0, -10.0, 2540440.0)
DTYPES = ("uint8", "uint16", "int16", "float32")


def months(n_time: int) -> NDArray[np.datetime64]:
    """First moments of ``n_time`` months from 2024 on."""
    return (np.datetime64("2024-01") + np.arange(n_time).astype("timedelta64[M]")).astype("datetime64[ms]")


def grid_of(shape: tuple[int, ...]) -> RasterGrid:
    """A 10 m UTM grid of the last two lengths of ``shape``."""
    return RasterGrid(CRS, TRANSFORM, *shape[-2:])


def noise(shape: tuple[int, ...], dtype: str = "uint16", seed: int = 0) -> NDArray[Any]:
    """Values from the whole range of an integer dtype, or normal float32 ones."""
    random = np.random.default_rng(seed)
    if dtype == "float32":
        return random.normal(scale=1000, size=shape).astype(np.float32)
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)


def drifting(shape: tuple[int, ...], dtype: str = "uint16", seed: int = 0) -> NDArray[Any]:
    """A rough scene that changes by little from one timestep to the next, so that residuals compress."""
    steps = np.random.default_rng(seed + 1).integers(0, 3, shape, dtype=np.uint8)
    return noise(shape[1:], dtype, seed) + steps.astype(dtype)


def planes(shape: tuple[int, ...], high: int, seed: int = 0) -> NDArray[np.uint8]:
    """Values 0 to ``high``, shape (time, y, x)."""
    return np.random.default_rng(seed + 2).integers(0, high, (shape[0], *shape[-2:]), dtype=np.uint8, endpoint=True)


def series_of(data: NDArray[Any], **parts: Any) -> ArraySeries:
    """``data`` on the 10 m grid, monthly, bands B1, B2, ..."""
    defaults: dict[str, Any] = {
        "grid": grid_of(data.shape),
        "times": months(data.shape[0]),
        "bands": [f"B{number + 1}" for number in range(data.shape[1])],
    }
    return ArraySeries(data, **(defaults | parts))


def write_store(out: Path, data: NDArray[Any], *, options: dict[str, Any] | None = None, **parts: Any) -> ChronoStore:
    """Encode ``data`` and open what was written; chunks of 16 pixels unless ``options`` say otherwise."""
    chosen = EncodeOptions(**({"chunk_size": 16, "workers": 2} | (options or {})))
    return open_store(encode_series(series_of(data, **parts), out, chosen).path)


def files(folder: Path) -> dict[str, bytes]:
    """Every file below ``folder``, by key."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def edit_json(file: Path, change: Callable[[Any], object]) -> None:
    """Rewrite a JSON file after ``change`` has altered its document in place."""
    document = json.loads(file.read_bytes())
    change(document)
    file.write_text(json.dumps(document))


def edit_block(store: Path, change: Callable[[Any], object]) -> None:
    """Alter the ``chronozarr`` block of a store."""
    edit_json(store / "zarr.json", lambda root: change(root["attributes"]["chronozarr"]))


def edit_array(store: Path, path: str, change: Callable[[Any], object]) -> None:
    """Alter an array's document, and drop the consolidated copy of all documents."""
    edit_json(store / path / "zarr.json", change)
    edit_json(store / "zarr.json", lambda root: root.pop("consolidated_metadata", None))


def same_bits(left: NDArray[Any], right: NDArray[Any]) -> bool:
    """Equal in dtype, shape and every bit: -0.0 is not 0.0."""
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


class LazySeries:
    """A series that hands out what ``frame(t)`` makes, and tells ``on_read`` before each read."""

    random_access = True
    has_mask = has_coverage = False
    provenance = None

    def __init__(
        self,
        shape: tuple[int, int, int, int],
        frame: Callable[[int, slice, slice], NDArray[Any]],
        *,
        on_read: Callable[[int], None] = lambda _: None,
        fingerprint: str = "drawn",
    ) -> None:
        self.grid = grid_of(shape)
        self.bands = series_of(np.empty((1, shape[1], 1, 1), np.uint16)).bands
        self.times = months(shape[0])
        self.dtype = np.dtype(np.uint16)
        self.nodata = 0
        self.fingerprint = fingerprint
        self._frame, self._on_read = frame, on_read

    def read(self, t: int, rows: slice, cols: slice = slice(None)) -> Strip:
        self._on_read(t)
        return Strip(self._frame(t, rows, cols))

    def release(self, t: int) -> None:
        pass


def lazy(data: NDArray[np.uint16], **parts: Any) -> LazySeries:
    """Frames of an array as a :class:`LazySeries`."""
    return LazySeries(data.shape, lambda t, rows, cols: data[t, :, rows, cols], **parts)


class CountingStorage(LocalStorage):
    """A folder that remembers which chunks were asked for."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.chunks: list[str] = []

    def get(self, key: str) -> bytes | None:
        if "/c/" in key:
            self.chunks.append(key)
        return super().get(key)


def closed_folder(tmp_path: Path) -> Path:
    """A folder that everybody may read and, but for the superuser, nobody may write."""
    folder = tmp_path / "closed"
    folder.mkdir()
    folder.chmod(0o555)
    for parent in folder.parents:
        if parent.stat().st_uid == os.getuid() and parent.stat().st_mode & 0o077 == 0:
            parent.chmod(0o755)
    return folder
