"""Coarser levels by block mean, mask maximum and coverage mean, strip by strip (§6, §2.4, §2.5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chronozarr_core.dtypes import Nodata, fill_value
from chronozarr_core.frames import Strip
from chronozarr_core.grid import RasterGrid

_SUM_DTYPE = {"uint8": np.uint16, "uint16": np.uint32, "int16": np.int32, "float32": np.float64}


def block_mean(values: NDArray[Any], nodata: Nodata = None, mask: NDArray[np.uint8] | None = None) -> NDArray[Any]:
    """Mean of the valid pixels of each 2 x 2 block (§6).

    Parameters
    ----------
    values : ndarray of a store dtype, shape (band, rows, cols); odd edges are replicated
    nodata : the store's nodata; marks invalid pixels only where there is no mask
    mask : ndarray of uint8, shape (rows, cols), optional; nonzero is valid for every band

    Returns
    -------
    ndarray, same dtype, shape (band, ceil(rows / 2), ceil(cols / 2)): the exact sum floor-divided by the number of
    valid pixels (float32: summed and divided in float64); ``nodata``, or 0, where no pixel is valid.
    """
    values = _even(values)
    fill = fill_value(nodata, values.dtype)
    shared = None if mask is None else _even(mask) != 0
    out = np.empty((values.shape[0], values.shape[1] // 2, values.shape[2] // 2), values.dtype)
    for band, target in zip(values, out, strict=True):
        valid = band != nodata if shared is None and nodata is not None else shared
        _mean_plane(band, valid, fill, target)
    return out


def _mean_plane(plane: NDArray[Any], valid: NDArray[np.bool_] | None, fill: int | float, out: NDArray[Any]) -> None:
    if valid is None or valid.all():
        _divide(_block_sum(plane), 4, out)
        return
    count = _block_sum(valid.view(np.uint8))
    total = _block_sum(np.where(valid, plane, plane.dtype.type(0)))
    _divide(total, 4, out)
    for n in (1, 2, 3):
        chosen = count == n
        if chosen.any():
            out[chosen] = total[chosen] // n if plane.dtype.kind != "f" else total[chosen] / n
    out[count == 0] = fill


def _block_sum(plane: NDArray[Any]) -> NDArray[Any]:
    """Exact sum of each 2 x 2 block, rows first: adding whole rows keeps memory access sequential."""
    wide = _SUM_DTYPE[plane.dtype.name]
    with np.errstate(invalid="ignore"):
        rows = np.add(plane[0::2], plane[1::2], dtype=wide)
        return np.asarray(np.add(rows[:, 0::2], rows[:, 1::2]))


def _divide(total: NDArray[Any], count: int, out: NDArray[Any]) -> None:
    if total.dtype.kind == "f":
        with np.errstate(over="ignore"):
            out[...] = total / count
    else:
        out[...] = total >> (count.bit_length() - 1)


def block_maximum(mask: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Level k mask: 1 where any pixel of the 2 x 2 block is valid (§2.4). Shape (rows, cols) to half of it."""
    mask = _even(mask)
    rows = np.maximum(mask[0::2], mask[1::2])
    return np.maximum(rows[:, 0::2], rows[:, 1::2])


def block_coverage(coverage: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Level k coverage: mean of the 2 x 2 block, halves rounded up, ``(sum + 2) // 4`` (§2.5)."""
    return ((_block_sum(_even(coverage)) + 2) >> 2).astype(np.uint8)


def _even(values: NDArray[Any]) -> NDArray[Any]:
    """Edges replicated to an even height and width (§6)."""
    rows, cols = values.shape[-2] % 2, values.shape[-1] % 2
    if not rows and not cols:
        return values
    return np.pad(values, [(0, 0)] * (values.ndim - 2) + [(0, rows), (0, cols)], mode="edge")


def halve(strip: Strip, nodata: Nodata) -> Strip:
    """The same ground one level coarser; a strip has an even number of rows unless it is the last."""
    return Strip(
        block_mean(strip.data, nodata, strip.mask),
        None if strip.mask is None else block_maximum(strip.mask),
        None if strip.coverage is None else block_coverage(strip.coverage),
    )


class LevelStrip(NamedTuple):
    """A complete row of cells of one level: ``chunk_size`` rows, or fewer at the bottom."""

    level: int
    cell_row: int
    strip: Strip


class PyramidBuilder:
    """One timestep's levels, built while its level-0 strips come in from top to bottom.

    Holds at most one row of cells of each coarser level.
    """

    def __init__(self, grids: Sequence[RasterGrid], chunk_size: int, nodata: Nodata) -> None:
        self._grids = grids
        self._chunk_size = chunk_size
        self._nodata = nodata
        self._pending: list[list[Strip]] = [[] for _ in grids]
        self._done = [0] * len(grids)

    def push(self, strip: Strip) -> Iterator[LevelStrip]:
        """Take the next ``chunk_size`` rows of level 0 (fewer at the bottom); yield the rows of cells now complete."""
        yield from self._add(0, strip)

    def _add(self, level: int, part: Strip) -> Iterator[LevelStrip]:
        pending = self._pending[level]
        pending.append(part)
        rows = sum(strip.data.shape[1] for strip in pending)
        start = self._done[level] * self._chunk_size
        if rows < self._chunk_size and start + rows < self._grids[level].height:
            return
        complete = stack(pending)
        pending.clear()
        cell_row = self._done[level]
        self._done[level] += 1
        yield LevelStrip(level, cell_row, complete)
        if level + 1 < len(self._grids):
            yield from self._add(level + 1, halve(complete, self._nodata))


def stack(strips: Sequence[Strip]) -> Strip:
    """Strips one below the other as one."""
    if len(strips) == 1:
        return strips[0]
    first = strips[0]
    return Strip(
        np.concatenate([strip.data for strip in strips], axis=1),
        None if first.mask is None else np.concatenate([strip.mask for strip in strips if strip.mask is not None]),
        None
        if first.coverage is None
        else np.concatenate([strip.coverage for strip in strips if strip.coverage is not None]),
    )
