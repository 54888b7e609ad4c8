"""Volatility: how much each level-0 cell changes over time (§5)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from chronozarr_core.grid import RasterGrid

DIVISOR = 10000


def volatility(
    sums: NDArray[np.float64], n_delta: int, n_band: int, grid: RasterGrid, chunk_size: int
) -> NDArray[np.float32]:
    """Mean |source - ref| of each cell over ``n_delta`` timesteps, all bands and pixels, / 10000, clipped to 0..1.

    Parameters
    ----------
    sums : summed absolute differences per cell, shape (rows, cols)
    """
    if n_delta == 0:
        return np.zeros(sums.shape, np.float32)
    mean = sums / (pixels(grid, chunk_size) * float(n_delta * n_band))
    # Infinite values have no mean difference; such a cell is as volatile as one can be.
    finite = np.nan_to_num(mean / DIVISOR, nan=1.0, posinf=1.0)
    return np.clip(finite, 0, 1).astype(np.float32)


def pixels(grid: RasterGrid, chunk_size: int) -> NDArray[np.int64]:
    """Pixels inside the array of each cell, shape (rows, cols)."""
    rows, cols = grid.cells(chunk_size)
    heights = np.minimum(chunk_size, grid.height - np.arange(rows) * chunk_size)
    widths = np.minimum(chunk_size, grid.width - np.arange(cols) * chunk_size)
    return np.outer(heights, widths)
