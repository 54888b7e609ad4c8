"""Grids that match, that almost match, and that do not (§8 and §6 of the reported cases)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from chronozarr_core.grid import RasterGrid
from gdal_tools.placement import Placement, place, union

GRID = RasterGrid("EPSG:32631", (10.0, 0.0, 500000.0, 0.0, -10.0, 5000000.0), 10, 10)


def moved(right: float, down: float, **changes: int) -> RasterGrid:
    a, b, c, d, e, f = GRID.transform
    return replace(GRID, transform=(a, b, c + right * a, d, e, f + down * e), **changes)


@given(st.integers(-500, 500), st.integers(-500, 500), st.integers(1, 60), st.integers(1, 60))
def test_a_source_on_the_lattice_lies_at_whole_pixels(right: int, down: int, height: int, width: int) -> None:
    assert place(moved(right, down, height=height, width=width), GRID) == Placement(down, right)


def test_noise_in_the_transform_is_no_shift() -> None:
    assert place(moved(1e-9, -1e-7), GRID) == Placement(0, 0)


def test_a_fraction_of_a_pixel_is_off_the_lattice() -> None:
    assert place(moved(0.3, 0), GRID) is None
    assert place(moved(0, 0.002), GRID) is None


def test_another_pixel_size_is_off_the_lattice() -> None:
    assert place(replace(GRID, transform=(10.13, 0.0, 500000.0, 0.0, -10.13, 5000000.0)), GRID) is None


def test_a_pixel_size_that_drifts_over_a_wide_raster_is_off_the_lattice() -> None:
    wide = replace(GRID, transform=(10.000001, 0.0, 500000.0, 0.0, -10.0, 5000000.0), width=20000)
    assert place(wide, replace(GRID, width=20000)) is None


def test_another_crs_never_lies_on_the_lattice() -> None:
    assert place(replace(GRID, crs="EPSG:32632"), GRID) is None


def test_the_union_holds_every_source_on_the_lattice_and_ignores_the_others() -> None:
    grid = union(GRID, [GRID, moved(1, 0), moved(0, -2), moved(0.3, 40)])
    assert (grid.height, grid.width) == (12, 11)
    assert grid.transform == (10.0, 0.0, 500000.0, 0.0, -10.0, 5000020.0)
    assert place(GRID, grid) == Placement(2, 0)


def test_a_source_covers_a_grid_only_with_a_pixel_everywhere() -> None:
    assert Placement(0, 0).covers(GRID, GRID)
    assert Placement(-1, 0).covers(replace(GRID, height=11), GRID)
    assert not Placement(1, 0).covers(replace(GRID, height=11), GRID)
    assert not Placement(0, 0).covers(replace(GRID, width=9), GRID)
