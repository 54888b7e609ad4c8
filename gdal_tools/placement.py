"""The grid of a series, and where each source lies on it: at whole pixels, or warped because the user asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from chronozarr_core.grid import GRID_TOLERANCE, RasterGrid, Transform


@dataclass(frozen=True)
class Placement:
    """Whole-pixel offset of a source's upper left pixel in the target grid; negative where it sticks out."""

    row: int
    col: int

    def covers(self, source: RasterGrid, target: RasterGrid) -> bool:
        """Whether the source has a pixel everywhere on the target."""
        bottom, right = self.row + source.height, self.col + source.width
        return self.row <= 0 and self.col <= 0 and bottom >= target.height and right >= target.width

    def lies_within(self, source: RasterGrid, target: RasterGrid) -> bool:
        """Whether every pixel of the source is on the target."""
        bottom, right = self.row + source.height, self.col + source.width
        return self.row >= 0 and self.col >= 0 and bottom <= target.height and right <= target.width


def place(source: RasterGrid, target: RasterGrid) -> Placement | None:
    """Where a source lies on the lattice of the target; None where it lies off it or has other pixels.

    Corners may miss whole pixels by :data:`GRID_TOLERANCE`, which is noise in the transform and no shift.
    """
    if source.crs != target.crs:
        return None
    a, _, c, _, e, f = target.transform
    sa, _, sc, _, se, sf = source.transform
    left, top = (sc - c) / a, (sf - f) / e
    right = (sc + sa * source.width - c) / a - source.width
    bottom = (sf + se * source.height - f) / e - source.height
    col, row = round(left), round(top)
    misses = (abs(left - col), abs(right - col), abs(top - row), abs(bottom - row))
    return Placement(row, col) if max(misses) <= GRID_TOLERANCE else None


def union(first: RasterGrid, others: Iterable[RasterGrid]) -> RasterGrid:
    """The smallest grid on the first one's lattice that holds it and every other source on that lattice."""
    placed = [(grid, place(grid, first)) for grid in others]
    on_lattice = [(grid, at) for grid, at in placed if at is not None]
    top = min([0, *(at.row for _, at in on_lattice)])
    left = min([0, *(at.col for _, at in on_lattice)])
    bottom = max([first.height, *(at.row + grid.height for grid, at in on_lattice)])
    right = max([first.width, *(at.col + grid.width for grid, at in on_lattice)])
    a, b, c, d, e, f = first.transform
    moved: Transform = (a, b, c + left * a, d, e, f + top * e)
    return replace(first, transform=moved, height=bottom - top, width=right - left)
