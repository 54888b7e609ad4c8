"""Converting a manifest: inspect every source, decide grid and validity, then encode; nothing is written before."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from chronozarr_core.crs import describe_crs, normalize_crs
from chronozarr_core.encode import EncodeResult, Progress, encode_series
from chronozarr_core.errors import ChronozarrError
from chronozarr_core.grid import RasterGrid
from chronozarr_core.model import Provenance
from chronozarr_core.plan import EncodeOptions, Sample, sample_cells
from gdal_tools.bands import band_problems
from gdal_tools.manifest import Manifest, read_manifest
from gdal_tools.placement import Placement, place, union
from gdal_tools.problems import Problem, SourceProblems, refuse
from gdal_tools.rasters import RasterBackend, Warp, raster_backend
from gdal_tools.series import PlacedSource, RasterSeries
from gdal_tools.sources import Source, SourceOptions, inspect, same_size_problems
from gdal_tools.validity import Validity, decide_validity

MAX_EMPTY = 16
"""How many times larger than its sources together a union may be before it is taken for a mistake."""


@dataclass(frozen=True)
class Conversion:
    """A checked manifest: the series it becomes, and what a person should know of it.

    Attributes
    ----------
    warped, padded : sources that are resampled, and sources that do not cover the grid
    notes : what was decided that a user may want otherwise
    """

    manifest: Path
    series: RasterSeries
    warped: int
    padded: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Estimate:
    """What a conversion will cost, from a sample of its cells."""

    sample: Sample
    raw_bytes: int
    store_bytes: int
    seconds: float


def convert(
    manifest: str | os.PathLike[str],
    out: str | os.PathLike[str],
    source_options: SourceOptions | None = None,
    options: EncodeOptions | None = None,
    *,
    resume: bool = False,
    progress: Progress | None = None,
) -> EncodeResult:
    """Convert the rasters of a manifest to a store; see :func:`prepare` for what is refused."""
    conversion = prepare(manifest, source_options)
    return encode_series(conversion.series, out, options, resumable=True, resume=resume, progress=progress)


def prepare(
    manifest: str | os.PathLike[str],
    options: SourceOptions | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Conversion:
    """Inspect every source of a manifest and decide what the store will be. Reads headers only, writes nothing.

    Raises
    ------
    SourceProblems
        Everything that is wrong, by file, each with its fix.
    """
    listed = read_manifest(Path(manifest))
    options = _with_bounds(listed, options or SourceOptions())
    backend = raster_backend()
    frames = _inspect_all(listed, options, backend, progress)
    sources = list(chain.from_iterable(frames))
    refuse(str(listed.path), list(_series_problems(frames, options)))
    grid = target_grid(sources, options, backend)
    places = [None if source.grid is None else place(source.grid, grid) for source in sources]
    refuse(str(listed.path), list(_grid_problems(sources, places, grid, options)))
    return _conversion(listed, options, backend, frames, grid, places)


def _with_bounds(manifest: Manifest, options: SourceOptions) -> SourceOptions:
    if manifest.bounds is None:
        return options
    if options.bounds is not None:
        raise ChronozarrError(f"{manifest.path} holds bounds, and --bounds gives them again: give them once")
    return replace(options, bounds=manifest.bounds)


def _inspect_all(
    manifest: Manifest, options: SourceOptions, backend: RasterBackend, progress: Callable[[int, int], None] | None
) -> list[list[Source]]:
    parts = [part for frame in manifest.frames for part in frame.parts]
    problems: list[Problem] = []
    found: list[Source] = []
    with ThreadPoolExecutor(8) as pool:
        inspected = pool.map(partial(inspect, options=options, backend=backend), parts)
        for done, (source, wrong) in enumerate(inspected, 1):
            problems += wrong
            if source is not None:
                found.append(source)
            if progress is not None:
                progress(done, len(parts))
    refuse(str(manifest.path), problems)
    sources = iter(found)
    return [[next(sources) for _ in frame.parts] for frame in manifest.frames]


def _series_problems(frames: Sequence[Sequence[Source]], options: SourceOptions) -> Iterator[Problem]:
    """What differs between sources that a store has once."""
    first = frames[0]
    for source in chain.from_iterable(frames):
        if source.dtype != first[0].dtype:
            yield Problem(
                source.where,
                f"its data type is {source.dtype}, that of {first[0].where} is {first[0].dtype}",
                "convert all files to one data type",
            )
    for frame in frames:
        for source, other in zip(frame, first, strict=True):
            if len(frame) > 1 and len(source.bands) != 1:
                yield Problem(source.where, f"it has {len(source.bands)} bands but stands for one", "give one-band files")
            else:
                yield from band_problems(source.where, source.bands, other.bands, other.where)
    if options.bounds is not None:
        yield from same_size_problems(list(chain.from_iterable(frames)))


def target_grid(sources: Sequence[Source], options: SourceOptions, backend: RasterBackend) -> RasterGrid:
    """The user's grid; else the first source's, grown by whole pixels to hold every source on its lattice."""
    if options.transform is not None and options.shape is not None and options.crs is not None:
        return RasterGrid(options.crs, options.transform, *options.shape)
    first = sources[0]
    if first.grid is not None and options.crs in (None, first.grid.crs):
        return union(first.grid, [source.grid for source in sources if source.grid is not None])
    if options.resampling is None:
        raise SourceProblems(first.where, [_mismatch(first, options.crs, None, first.where)])
    return backend.suggest_grid(first.part.uri, _target_crs(first, options), first.assumed_crs, first.assumed_transform)


def _target_crs(source: Source, options: SourceOptions) -> str:
    """The user's CRS, or the one the source declares: it has an EPSG code, or inspection had refused it."""
    return options.crs or normalize_crs(source.header.crs_wkt or "")


def _grid_problems(
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
        elif placed is None and options.resampling not in ("nearest", "mode") and len(set(source.missing[0])) > 1:
            yield Problem(
                source.where, f"it has {len(source.missing[0])} nodata values, which {options.resampling} would blend",
                "use --resampling nearest",
            )


def _mismatch(source: Source, crs: str | None, grid: RasterGrid | None, first: str) -> Problem:
    """Why a source is not on the grid (in CRS ``crs``; None where there is no grid yet), and what to do."""
    fix = "warp it with --resampling nearest (classes, counts) or --resampling bilinear (measurements)"
    own = source.grid
    if own is None or grid is None or own.crs != grid.crs:
        return Problem(source.where, _other_frame(source, crs, first), fix)
    (a, _, c, _, e, f), (ta, _, tc, _, te, tf) = own.transform, grid.transform
    if not (math.isclose(a, ta, rel_tol=1e-6) and math.isclose(e, te, rel_tol=1e-6)):
        what = f"its pixels are {a:g} x {-e:g}, those of {first} {ta:g} x {-te:g}"
    else:
        what = f"its pixels lie {(c - tc) / ta % 1:.3g} columns and {(f - tf) / te % 1:.3g} rows off those of {first}"
    return Problem(source.where, what, fix)


def _other_frame(source: Source, crs: str | None, first: str) -> str:
    transform = source.header.transform
    if transform is not None and (transform[1] or transform[3] or transform[0] < 0):
        return "it is rotated or mirrored, which a store's grid is not"
    declared = source.grid.crs if source.grid else describe_crs(source.header.crs_wkt or "")
    return f"its CRS is {declared}, and the grid's {crs} (of {first} or --crs)"


def _conversion(
    manifest: Manifest,
    options: SourceOptions,
    backend: RasterBackend,
    frames: Sequence[Sequence[Source]],
    grid: RasterGrid,
    places: Sequence[Placement | None],
) -> Conversion:
    sources = list(chain.from_iterable(frames))
    warped = sum(placed is None for placed in places)
    padded = sum(
        placed is not None and source.grid is not None and not placed.covers(source.grid, grid)
        for source, placed in zip(sources, places, strict=True)
    )
    validity = decide_validity(sources, options, complete=not warped and not padded)
    placed_sources = iter(
        PlacedSource(source, placed, None if placed else _warp(source, grid, options, validity))
        for source, placed in zip(sources, places, strict=True)
    )
    series = RasterSeries(
        backend,
        [[next(placed_sources) for _ in frame] for frame in frames],
        grid=grid,
        times=np.array([frame.instant for frame in manifest.frames], "datetime64[ms]"),
        bands=tuple(band for source in frames[0] for band in source.bands),
        validity=validity,
        provenance=_provenance(manifest, warped, options, grid),
    )
    notes = tuple(_notes(sources, places, grid, options))
    return Conversion(manifest.path, series, warped, padded, notes)


def _warp(source: Source, grid: RasterGrid, options: SourceOptions, validity: Validity) -> Warp:
    missing = source.missing[0]
    return Warp(
        grid=grid,
        resampling=options.resampling or "nearest",
        source_crs=source.assumed_crs,
        source_transform=source.assumed_transform,
        source_nodata=missing[0] if len(missing) == 1 else None,
        nodata=None if validity.has_mask else validity.nodata,
    )


def _provenance(manifest: Manifest, warped: int, options: SourceOptions, grid: RasterGrid) -> Provenance | None:
    """Resampled values are not the sources' values, so the store says so."""
    if not warped:
        return None
    return Provenance(
        sources=(manifest.path.name,),
        composite="one source for each timestep",
        notes=f"{warped} sources resampled ({options.resampling}) to {grid.crs}, {grid.resolution:g} units a pixel",
    )


def _notes(
    sources: Sequence[Source], places: Sequence[Placement | None], grid: RasterGrid, options: SourceOptions
) -> Iterator[str]:
    declared = {value for source in sources for band in source.header.bands if (value := band.nodata) is not None}
    silent = [source for source in sources if not source.has_plane and all(not values for values in source.missing)]
    if declared and silent and not options.ignore_declared_nodata:
        values = ", ".join(f"{value:g}" for value in sorted(declared))
        yield (
            f"{silent[0].where} and {len(silent) - 1} more declare no nodata while others declare {values}: "
            f"that value is data there; if it is not, add --nodata {min(declared):g}"
            if len(silent) > 1
            else f"{silent[0].where} declares no nodata while others declare {values}: that value is data there; "
            f"if it is not, add --nodata {min(declared):g}"
        )
    both = [source for source in sources if source.has_plane and any(band.nodata is not None for band in source.header.bands)]
    if both:
        yield f"{both[0].where} has an alpha band or mask and declares nodata: the alpha or mask decides"
    if any(band.color == "palette" for source in sources for band in source.header.bands):
        yield "bands with a colour table hold classes: coarser levels are block means, which mean nothing for classes (§6)"
    yield from _crop_notes(sources, places, grid)


def _crop_notes(sources: Sequence[Source], places: Sequence[Placement | None], grid: RasterGrid) -> Iterator[str]:
    cut = [
        source
        for source, placed in zip(sources, places, strict=True)
        if placed is not None
        and source.grid is not None
        and (
            placed.row < 0
            or placed.col < 0
            or placed.row + source.grid.height > grid.height
            or placed.col + source.grid.width > grid.width
        )
    ]
    if cut:
        yield f"{len(cut)} sources reach beyond the target grid and are cropped, {cut[0].where} among them"


def estimate(series: RasterSeries, options: EncodeOptions) -> Estimate:
    """Size and time of the store, from encoding a few level-0 cells over all dates."""
    start = time.perf_counter()
    sample = sample_cells(series, options)
    elapsed = time.perf_counter() - start
    rows, cols = series.grid.cells(options.chunk_size)
    pixels = series.grid.height * series.grid.width
    raw = len(series.times) * len(series.bands) * pixels * series.dtype.itemsize
    share = sample.plain_bytes / sample.raw_bytes
    seconds = elapsed * rows * cols / sample.cells
    return Estimate(sample, raw, int(raw * share * 4 / 3), seconds)

