"""Converting a manifest: inspect every source, decide grid and validity, then encode; nothing is written before."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from chronozarr_core.encode import EncodeResult, encode_series
from chronozarr_core.errors import ChronozarrError
from chronozarr_core.grid import RasterGrid
from chronozarr_core.model import Provenance
from chronozarr_core.plan import EncodeOptions, Sample, sample_cells
from chronozarr_core.progress import Progress
from gdal_tools.bands import band_problems
from gdal_tools.manifest import Manifest, read_manifest
from gdal_tools.notes import notes_on
from gdal_tools.placement import Placement, place
from gdal_tools.problems import Problem, refuse
from gdal_tools.rasters import RasterBackend, Warp, raster_backend
from gdal_tools.series import PlacedSource, RasterSeries
from gdal_tools.sources import Source, SourceOptions, inspect, same_size_problems
from gdal_tools.target import grid_problems, target_grid
from gdal_tools.validity import Validity, decide_validity


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
    progress: Progress | None = None,
) -> Conversion:
    """Inspect every source of a manifest and decide what the store will be. Reads headers only, writes nothing.

    Raises
    ------
    SourceProblemsError
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
    refuse(str(listed.path), list(grid_problems(sources, places, grid, options)))
    return _conversion(listed, options, backend, frames, grid, places)


def _with_bounds(manifest: Manifest, options: SourceOptions) -> SourceOptions:
    if manifest.bounds is None:
        return options
    if options.bounds is not None:
        raise ChronozarrError(f"{manifest.path} holds bounds, and --bounds gives them again: give them once")
    return replace(options, bounds=manifest.bounds)


def _inspect_all(
    manifest: Manifest, options: SourceOptions, backend: RasterBackend, progress: Progress | None
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
                yield Problem(
                    source.where, f"it has {len(source.bands)} bands but stands for one", "give one-band files"
                )
            else:
                yield from band_problems(source.where, source.bands, other.bands, other.where)
    if options.bounds is not None:
        yield from same_size_problems(list(chain.from_iterable(frames)))


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
    notes = tuple(notes_on(sources, places, grid, options))
    return Conversion(manifest.path, series, warped, padded, notes)


def _warp(source: Source, grid: RasterGrid, options: SourceOptions, validity: Validity) -> Warp:
    missing = source.missing[0]
    return Warp(
        grid=grid,
        resampling=options.resampling or "nearest",
        source_crs=source.assumed_crs,
        source_transform=source.assumed_transform,
        source_nodata=missing[0] if len(missing) == 1 else None,
        ignore_declared_nodata=options.ignore_declared_nodata,
        nodata=None if validity.has_mask else validity.nodata,
    )


def _provenance(manifest: Manifest, warped: int, options: SourceOptions, grid: RasterGrid) -> Provenance | None:
    """Resampled values are not the sources' values, so the store says so."""
    if not warped:
        return None
    return Provenance(
        sources=(manifest.path.name,),
        composite="one source for each timestep",
        notes=f"{warped} sources resampled ({options.resampling}) to {grid.crs}, {grid.resolution:.12g} units a pixel",
    )


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
