"""Raster grids: where the pixels of a level lie, and what follows from it (§2.1, §3.3, §6)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from chronozarr_core.crs import normalize_crs
from chronozarr_core.errors import ChronozarrError, SelectionError

Transform = tuple[float, float, float, float, float, float]
"""``(a, b, c, d, e, f)``: x = a*col + b*row + c, y = d*col + e*row + f for pixel corners (§3.3)."""

GRID_TOLERANCE = 1e-3
"""Pixels by which coordinates may miss a regular grid and still mean it."""


@dataclass(frozen=True)
class RasterGrid:
    """A north-up grid of square or oblong pixels in one CRS.

    Attributes
    ----------
    crs : ``EPSG:<code>``
    transform : six floats in affine order, pixel corners; ``b == d == 0``, ``a > 0``, ``e < 0``
    height, width : pixels
    """

    crs: str
    transform: Transform
    height: int
    width: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "crs", normalize_crs(self.crs))
        object.__setattr__(self, "transform", tuple(float(value) for value in self.transform))
        a, b, _, d, e, _ = self.transform
        if not np.isfinite(self.transform).all():
            raise ChronozarrError(f"the grid's transform {list(self.transform)} is not finite: give six finite numbers")
        if b or d:
            raise ChronozarrError(f"the grid is rotated (transform {list(self.transform)}): a store needs b = d = 0")
        if a <= 0 or e >= 0:
            raise ChronozarrError(
                f"the grid is not north up (transform {list(self.transform)}): a > 0 and e < 0 needed"
            )
        if self.height < 1 or self.width < 1:
            raise ChronozarrError(f"the grid is empty: {self.height} x {self.width} pixels")

    @property
    def resolution(self) -> float:
        """Ground sample distance in CRS units, ``abs(a)``."""
        return abs(self.transform[0])

    @property
    def x(self) -> NDArray[np.float64]:
        """Projected x of pixel centres, increasing, shape (width,)."""
        return self.transform[2] + (np.arange(self.width, dtype=np.float64) + 0.5) * self.transform[0]

    @property
    def y(self) -> NDArray[np.float64]:
        """Projected y of pixel centres, decreasing, shape (height,)."""
        return self.transform[5] + (np.arange(self.height, dtype=np.float64) + 0.5) * self.transform[4]

    @property
    def bbox(self) -> tuple[float, float, float, float]:
        """West, south, east, north of the outer pixel edges."""
        a, _, c, _, e, f = self.transform
        return (c, f + e * self.height, c + a * self.width, f)

    def coarser(self) -> RasterGrid:
        """The next pyramid level: half as many pixels, rounded up, twice as large, same origin (§3.3, §6)."""
        a, b, c, d, e, f = self.transform
        return replace(
            self, transform=(a * 2, b, c, d, e * 2, f), height=(self.height + 1) // 2, width=(self.width + 1) // 2
        )

    def cells(self, chunk_size: int) -> tuple[int, int]:
        """Rows and columns of cells of ``chunk_size`` pixels (§2.1)."""
        return -(-self.height // chunk_size), -(-self.width // chunk_size)

    def levels(self, chunk_size: int, n_lods: int | None = None) -> tuple[RasterGrid, ...]:
        """The grid and its coarser levels: ``n_lods`` of them, or up to the first of one cell (§6)."""
        grids = [self]
        while len(grids) < n_lods if n_lods is not None else grids[-1].cells(chunk_size) != (1, 1):
            grids.append(grids[-1].coarser())
        return tuple(grids)

    def index(self, x: float, y: float) -> tuple[int, int]:
        """Row and column of the pixel that holds a projected coordinate.

        Raises
        ------
        SelectionError
            The coordinate lies outside the grid.
        """
        a, _, c, _, e, f = self.transform
        row, col = int(np.floor((y - f) / e)), int(np.floor((x - c) / a))
        if not (0 <= row < self.height and 0 <= col < self.width):
            raise SelectionError(f"({x}, {y}) is outside the store: its bounds are {list(self.bbox)} in {self.crs}")
        return row, col
