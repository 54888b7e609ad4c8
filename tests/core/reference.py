"""The specification's formulas as plain loops, to compare the core with. Imports nothing of the core."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
from numpy.typing import NDArray


def anchors(n_time: int, interval: int) -> list[int]:
    """``[0, k, 2k, ...]`` while below ``n_time`` (§4.2.1)."""
    found, anchor = [], 0
    while anchor < n_time:
        found.append(anchor)
        anchor += interval
    return found


def references(n_time: int, interval: int) -> dict[int, int]:
    """Nearest anchor of every non-anchor timestep, the earlier of two as near (§4.2.2)."""
    chosen = {}
    for t in range(n_time):
        if t in anchors(n_time, interval):
            continue
        best = None
        for anchor in anchors(n_time, interval):
            if best is None or abs(t - anchor) < abs(t - best):
                best = anchor
        chosen[t] = best
    return chosen


def stored(data: NDArray[Any], t: int, map_: dict[int, int]) -> NDArray[Any]:
    """What the data array holds at ``t``: the source, or the difference modulo 2**bits (§4.2.3, §4.2.4)."""
    if t not in map_:
        return data[t]
    modulus = 2 ** (8 * data.dtype.itemsize)
    return ((data[t].astype(np.int64) - data[map_[t]].astype(np.int64)) % modulus).astype(data.dtype)


def padded(values: NDArray[Any], size: int, fill: float) -> Iterator[tuple[int, int, NDArray[Any]]]:
    """Each cell (row, col) of an array (..., y, x) at full size, elements outside equal to ``fill`` (§2.1)."""
    height, width = values.shape[-2:]
    for row, col in itertools.product(range(-(-height // size)), range(-(-width // size))):
        cell = np.full((*values.shape[:-2], size, size), fill, values.dtype)
        part = values[..., row * size : (row + 1) * size, col * size : (col + 1) * size]
        cell[..., : part.shape[-2], : part.shape[-1]] = part
        yield row, col, cell


def _blocks(height: int, width: int) -> Iterator[tuple[int, int, list[tuple[int, int]]]]:
    """Pixels of each 2 x 2 block; beyond the edge the last row or column again (§6)."""
    for row, col in itertools.product(range(-(-height // 2)), range(-(-width // 2))):
        rows = (2 * row, min(2 * row + 1, height - 1))
        cols = (2 * col, min(2 * col + 1, width - 1))
        yield row, col, list(itertools.product(rows, cols))


def halve_data(plane: NDArray[Any], nodata: float | None, mask: NDArray[np.uint8] | None) -> NDArray[Any]:
    """Block mean of the valid pixels of one band (§6): shape (y, x) to half of it."""
    height, width = plane.shape
    out = np.empty((-(-height // 2), -(-width // 2)), plane.dtype)
    for row, col, pixels in _blocks(height, width):
        valid = [plane[pixel].item() for pixel in pixels if _valid(plane, pixel, nodata, mask)]
        out[row, col] = _mean(valid, plane.dtype) if valid else (nodata or 0)
    return out


def _valid(plane: NDArray[Any], pixel: tuple[int, int], nodata: float | None, mask: NDArray[np.uint8] | None) -> bool:
    """The validity rule (§2.3)."""
    if mask is not None:
        return bool(mask[pixel] == 1)
    return nodata is None or plane[pixel].item() != nodata


def _mean(values: list[Any], dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "f":
        return np.float32(sum(map(np.float64, values)) / np.float64(len(values)))
    return sum(values) // len(values)


def halve_mask(mask: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """1 where any pixel of the block is valid (§2.4)."""
    out = np.empty((-(-mask.shape[0] // 2), -(-mask.shape[1] // 2)), np.uint8)
    for row, col, pixels in _blocks(*mask.shape):
        out[row, col] = max(mask[pixel] for pixel in pixels)
    return out


def halve_coverage(coverage: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """``(sum + 2) // 4`` (§2.5)."""
    out = np.empty((-(-coverage.shape[0] // 2), -(-coverage.shape[1] // 2)), np.uint8)
    for row, col, pixels in _blocks(*coverage.shape):
        out[row, col] = (sum(int(coverage[pixel]) for pixel in pixels) + 2) // 4
    return out


Frame = tuple[NDArray[Any], NDArray[np.uint8] | None, NDArray[np.uint8] | None]


def pyramid(frame: Frame, nodata: float | None, n_levels: int) -> list[Frame]:
    """Data (band, y, x), mask and coverage of one timestep at every level."""
    levels = [frame]
    while len(levels) < n_levels:
        data, mask, coverage = levels[-1]
        halved = np.stack([halve_data(plane, nodata, mask) for plane in data])
        levels.append(
            (
                halved,
                None if mask is None else halve_mask(mask),
                None if coverage is None else halve_coverage(coverage),
            )
        )
    return levels


def level_count(height: int, width: int, size: int) -> int:
    """Levels up to and with the first whose grid is 1 x 1 (§6)."""
    count = 1
    while -(-height // size) > 1 or -(-width // size) > 1:
        height, width, count = -(-height // 2), -(-width // 2), count + 1
    return count


def volatility(data: NDArray[Any], interval: int, size: int) -> NDArray[np.float64]:
    """Mean absolute difference of each level-0 cell to its references, / 10000, clipped (§5)."""
    height, width = data.shape[-2:]
    map_ = references(len(data), interval)
    wide = data.astype(np.float64 if data.dtype.kind == "f" else np.int32)
    out = np.zeros((-(-height // size), -(-width // size)))
    for row, col in itertools.product(range(out.shape[0]), range(out.shape[1])):
        cell = wide[:, :, row * size : (row + 1) * size, col * size : (col + 1) * size]
        if map_:
            differences = [np.abs(cell[t] - cell[anchor]) for t, anchor in map_.items()]
            out[row, col] = min(max(np.mean(differences) / 10000, 0), 1)
    return out


def document(store: Path, path: str) -> dict[str, Any]:
    """A node's ``zarr.json``."""
    return json.loads((store / path / "zarr.json").read_bytes())


def decode(array: dict[str, Any], raw: bytes) -> NDArray[Any]:
    """A chunk's values by the ``codecs`` list of its array's document, through the codec library alone."""
    codec = {"zstd": numcodecs.Zstd, "gzip": numcodecs.GZip, "blosc": numcodecs.Blosc}[array["codecs"][1]["name"]]()
    dtype = np.dtype(array["data_type"]).newbyteorder("<")
    return np.frombuffer(codec.decode(raw), dtype).reshape(array["chunk_grid"]["configuration"]["chunk_shape"])


def encode(array: dict[str, Any], values: NDArray[Any]) -> bytes:
    """The bytes of a zstd chunk."""
    assert array["codecs"][1]["name"] == "zstd"
    return bytes(numcodecs.Zstd(level=1).encode(np.ascontiguousarray(values)))
