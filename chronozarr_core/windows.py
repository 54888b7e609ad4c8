"""Windows of a level, cut into the cells they touch (§2.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from chronozarr_core.errors import SelectionError
from chronozarr_core.grid import RasterGrid


class Piece(NamedTuple):
    """The part of a window that lies in one cell."""

    row: int
    col: int
    rows: slice
    cols: slice
    out_rows: slice
    out_cols: slice


class Window:
    """Rows and columns of a level, cut into the cells they touch."""

    def __init__(self, grid: RasterGrid, rows: slice, cols: slice) -> None:
        self._rows = _bounds("rows", rows, grid.height)
        self._cols = _bounds("cols", cols, grid.width)

    @property
    def shape(self) -> tuple[int, int]:
        return self._rows[1] - self._rows[0], self._cols[1] - self._cols[0]

    def pieces(self, size: int) -> Iterator[Piece]:
        for row, rows, out_rows in _cuts(*self._rows, size):
            for col, cols, out_cols in _cuts(*self._cols, size):
                yield Piece(row, col, rows, cols, out_rows, out_cols)


def _bounds(name: str, part: slice, length: int) -> tuple[int, int]:
    start, stop, step = part.indices(length)
    if step != 1:
        raise SelectionError(f"{name} has step {step}: windows are read at step 1; take a coarser level instead")
    return start, max(start, stop)


def _cuts(start: int, stop: int, size: int) -> Iterator[tuple[int, slice, slice]]:
    """For each cell: its number, the slice inside it and the slice of the output."""
    for cell in range(start // size, -(-stop // size)):
        low, high = max(start, cell * size), min(stop, (cell + 1) * size)
        yield cell, slice(low - cell * size, high - cell * size), slice(low - start, high - start)
