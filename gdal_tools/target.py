"""The grid that a series gets, and why a source is not on it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from chronozarr_core.crs import describe_crs, normalize_crs
from chronozarr_core.grid import RasterGrid
from gdal_tools.placement import Placement, union
from gdal_tools.problems import Problem, SourceProblemsError
from gdal_tools.rasters import RasterBackend
from gdal_tools.sources import Source, SourceOptions

MAX_EMPTY = 16
"""How many times larger than its largest source a union may be before it is taken for a mistake."""

PICKING = ("nearest", "mode")
"""Resampling methods that only pick values, and so cannot blend a nodata value into data."""

WARP_IT = "warp it with --resampling nearest (classes, counts) or --resampling bilinear (measurements)"


def target_grid(sources: Sequence[Source], options: SourceOptions, backend: RasterBackend) -> RasterGrid:
    """The user's grid; else the first source's, grown by whole pixels to hold every source on its lattice."""
    if options.transform is not None and options.shape is not None and options.crs is not None:
        return RasterGrid(options.crs, options.transform, *options.shape)
    first = sources[0]
    if first.grid is not None and options.crs in (None, first.grid.crs):
        return union(first.grid, [source.grid for source in sources if source.grid is not None])
    if options.resampling is None:
        raise SourceProblemsError(first.where, [_mismatch(first, options.crs, None, first.where)])
    return backend.suggest_grid(first.part.uri, _target_crs(first, options), first.assumed_crs, first.assumed_transform)


def _target_crs(source: Source, options: SourceOptions) -> str:
    """The user's CRS, or the one the source declares: it has an EPSG code, or inspection had refused it."""
    return options.crs or normalize_crs(source.header.crs_wkt or "")


def grid_problems(
    sources: Sequence[Source], places: Sequence[Placement | None], grid: RasterGrid, options: SourceOptions
) -> Iterator[Problem]:
    """Sources that are not on the grid while no resampling is asked for, and a grid that is mostly empty."""
    largest = max(source.header.height * source.header.width for source in sources)
    if options.transform is None and grid.height * grid.width > MAX_EMPTY * largest:
        yield Problem(
            "the sources",
            f"they lie so far apart that a grid of {grid.height} x {grid.width} pixels would hold them, mostly empty",
            "leave out what does not belong, or say the grid with --crs, --transform and --shape",
        )
    for source, placed in zip(sources, places, strict=True):
        if placed is None and options.resampling is None:
            yield _mismatch(source, grid.crs, grid, sources[0].where)
        elif placed is None and options.resampling not in PICKING and len(source.missing_values) > 1:
            listed = ", ".join(f"{value:.12g}" for value in sorted(source.missing_values))
            yield Problem(
                source.where,
                f"it has several nodata values ({listed}), and {options.resampling} would blend them with data",
                "use --resampling nearest",
            )


def _mismatch(source: Source, crs: str | None, grid: RasterGrid | None, first: str) -> Problem:
    """Why a source is not on the grid (in CRS ``crs``; None where there is no grid yet), and what to do."""
    own = source.grid
    if own is None or grid is None or own.crs != grid.crs:
        return Problem(source.where, _other_frame(source, crs, first), WARP_IT)
    (a, _, c, _, e, f), (ta, _, tc, _, te, tf) = own.transform, grid.transform
    if not (math.isclose(a, ta, rel_tol=1e-6) and math.isclose(e, te, rel_tol=1e-6)):
        what = f"its pixels are {a:.9g} x {-e:.9g}, those of {first} {ta:.9g} x {-te:.9g}"
    else:
        what = f"its pixels lie {(c - tc) / ta % 1:.3g} columns and {(f - tf) / te % 1:.3g} rows off those of {first}"
    return Problem(source.where, what, WARP_IT)


def _other_frame(source: Source, crs: str | None, first: str) -> str:
    transform = source.header.transform
    if transform is not None and (transform[1] or transform[3] or transform[0] < 0):
        return "it is rotated or mirrored, which a store's grid is not"
    declared = source.grid.crs if source.grid else describe_crs(source.header.crs_wkt or "")
    return f"its CRS is {declared}, and the grid's {crs} (of {first} or --crs)"
