"""Plan: what a store will be, before any value is written (§4.3, §6)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chronozarr_core.chunks import ChunkFormat, Compression
from chronozarr_core.dtypes import STAR_DELTA_DTYPES
from chronozarr_core.errors import ChronozarrError
from chronozarr_core.frames import FrameSeries
from chronozarr_core.grid import RasterGrid
from chronozarr_core.instants import format_instant
from chronozarr_core.layout import Layout
from chronozarr_core.model import Json, Level, Selection, StoreMetadata, TemporalEncoding
from chronozarr_core.temporal import (
    DEFAULT_ANCHOR_INTERVAL,
    Group,
    anchor_indices,
    delta_references,
    groups,
    residual,
)

ENCODINGS = ("auto", "none", "star-delta")
SAMPLED_CELLS = 3
STAR_DELTA_RATIO = 0.85


def default_workers() -> int:
    """One thread per processor that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class EncodeOptions:
    """How a store is written; the defaults are the specification's.

    Attributes
    ----------
    encoding : ``auto``, ``none`` or ``star-delta`` (§4.3)
    anchor_interval : timesteps between anchors, and of the nominal schedule of a ``none`` store's volatility (§5)
    compression : the codec of ``data``, ``mask`` and ``coverage`` (§8)
    chunk_size : edge of a cell in pixels, even (§2.1)
    n_lods : pyramid levels, level 0 included; None stops at the first level of one cell (§6)
    workers : threads
    """

    encoding: str = "auto"
    anchor_interval: int = DEFAULT_ANCHOR_INTERVAL
    compression: Compression = field(default_factory=Compression)
    chunk_size: int = 512
    n_lods: int | None = None
    workers: int = field(default_factory=default_workers)

    def __post_init__(self) -> None:
        if self.encoding not in ENCODINGS:
            raise ChronozarrError(f"encoding {self.encoding!r} is unknown: expected one of {', '.join(ENCODINGS)}")
        for name, value, least in (
            ("anchor_interval", self.anchor_interval, 1),
            ("chunk_size", self.chunk_size, 2),
            ("n_lods", self.n_lods, 1),
            ("workers", self.workers, 1),
        ):
            if value is not None and not (_is_integer(value) and value >= least):
                raise ChronozarrError(f"{name} is {value}: expected an integer of at least {least}")
        if self.chunk_size % 2:
            raise ChronozarrError(f"chunk_size is {self.chunk_size}: expected an even number, 256 or 512 (§2.1)")


def _is_integer(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


@dataclass(frozen=True)
class Sample:
    """Compressed bytes of some level-0 cells over all timesteps, stored plain and as residuals (§4.3)."""

    cells: int
    raw_bytes: int
    plain_bytes: int
    star_delta_bytes: int

    @property
    def ratio(self) -> float:
        """Residual bytes over plain bytes; 1 where nothing is stored either way."""
        return self.star_delta_bytes / self.plain_bytes if self.plain_bytes else 1.0


@dataclass(frozen=True)
class Plan:
    """The layout of a store, and the groups of timesteps that fill it.

    ``references`` is the recorded map of a star-delta store, or the nominal schedule of a ``none`` store's
    volatility (§5), which no attribute holds.
    """

    layout: Layout
    references: dict[int, int]
    workers: int

    @property
    def groups(self) -> tuple[Group, ...]:
        return groups(self.layout.n_time, self.references)

    def strips(self) -> list[slice]:
        """The rows of each row of cells of level 0, from top to bottom."""
        height, size = self.layout.grids[0].height, self.layout.chunk_size
        return [slice(row, min(row + size, height)) for row in range(0, height, size)]


def make_plan(series: FrameSeries, options: EncodeOptions, temporal: TemporalEncoding | None = None) -> Plan:
    """Decide everything about the store that ``series`` becomes; reads a sample where ``auto`` has to measure.

    ``temporal`` is the choice of an earlier run of the same plan, which is kept instead of measured again.

    Raises
    ------
    ChronozarrError
        The options contradict the data, for example ``star-delta`` for int16.
    """
    chosen = temporal or choose_temporal(series, options)
    grids = series.grid.levels(options.chunk_size, options.n_lods)
    metadata = StoreMetadata(
        times=tuple(format_instant(instant) for instant in series.times),
        bands=series.bands,
        nodata=series.nodata,
        crs=series.grid.crs,
        temporal=chosen,
        levels=_levels(grids, len(series.times), len(series.bands), options.chunk_size),
        mask_variable="mask" if series.has_mask else None,
        coverage_variable="coverage" if series.has_coverage else None,
        provenance=series.provenance,
    )
    layout = Layout(metadata, grids, series.dtype, options.chunk_size, options.compression)
    return Plan(layout, delta_references(len(series.times), options.anchor_interval), options.workers)


def _levels(grids: Sequence[RasterGrid], n_time: int, n_band: int, chunk_size: int) -> tuple[Level, ...]:
    return tuple(
        Level(
            str(k), grid.resolution, grid.transform, (n_time, n_band, grid.height, grid.width), grid.cells(chunk_size)
        )
        for k, grid in enumerate(grids)
    )


def choose_temporal(series: FrameSeries, options: EncodeOptions) -> TemporalEncoding:
    """The temporal block: forced, or star-delta where a sample shrinks to 0.85 of its plain size (§4.3)."""
    allowed = series.dtype.name in STAR_DELTA_DTYPES
    if options.encoding == "star-delta" and not allowed:
        raise ChronozarrError(
            f"star-delta is not allowed for {series.dtype.name} data (§2.3): use encoding none or auto"
        )
    selection = None
    star_delta = options.encoding == "star-delta"
    if options.encoding == "auto" and allowed:
        sample = sample_cells(series, options)
        star_delta = sample.ratio <= STAR_DELTA_RATIO
        selection = Selection(sample.cells, sample.ratio)
    if not star_delta:
        return TemporalEncoding("none", selection=selection)
    n_time = len(series.times)
    return TemporalEncoding(
        "star-delta",
        options.anchor_interval,
        anchor_indices(n_time, options.anchor_interval),
        delta_references(n_time, options.anchor_interval),
        selection,
    )


def sample_cells(series: FrameSeries, options: EncodeOptions) -> Sample:
    """Encode a few level-0 cells over all timesteps both ways (§4.3); residuals only of unsigned integers.

    Memory is that of the sampled cells of the groups in work, whatever the number of timesteps.
    """
    cells = _spread(series.grid.cells(options.chunk_size), series.random_access)
    shape = (1, len(series.bands), options.chunk_size, options.chunk_size)
    fill = series.nodata if series.nodata is not None else 0
    chunks = ChunkFormat(shape, series.dtype, fill, options.compression, "sample")
    measure = partial(_measure_group, series, chunks, cells)
    with ThreadPoolExecutor(options.workers) as pool:
        sizes = list(
            pool.map(measure, groups(len(series.times), delta_references(len(series.times), options.anchor_interval)))
        )
    plain, star_delta = (sum(column) for column in zip(*sizes, strict=True))
    return Sample(len(cells), len(cells) * chunks.nbytes * len(series.times), plain, star_delta)


def _spread(grid: tuple[int, int], random_access: bool) -> list[tuple[int, int]]:
    """Cells spread evenly over the grid; over its upper half where rows further down cost the rows above them."""
    rows = grid[0] if random_access else (grid[0] + 1) // 2
    total = rows * grid[1] if rows * grid[1] >= SAMPLED_CELLS else grid[0] * grid[1]
    n = min(SAMPLED_CELLS, total)
    return [divmod((2 * i + 1) * total // (2 * n), grid[1]) for i in range(n)]


def _measure_group(
    series: FrameSeries, chunks: ChunkFormat, cells: Sequence[tuple[int, int]], group: Group
) -> tuple[int, int]:
    anchors: dict[tuple[int, int], NDArray[Any]] = {}
    plain = star_delta = 0
    for t in group.timesteps:
        for cell in cells:
            source = _read_cell(series, t, cell, chunks.shape[-1])
            size = _encoded_size(chunks, source, chunks.fill_value)
            plain += size
            if t == group.anchor or source.dtype.kind != "u":
                anchors[cell] = source
                star_delta += size
            else:
                star_delta += _encoded_size(chunks, residual(source, anchors[cell]), 0)
        series.release(t)
    return plain, star_delta


def _read_cell(series: FrameSeries, t: int, cell: tuple[int, int], size: int) -> NDArray[Any]:
    (row, col), grid = cell, series.grid
    rows = slice(row * size, min((row + 1) * size, grid.height))
    cols = slice(col * size, min((col + 1) * size, grid.width))
    return series.read(t, rows, cols).data


def _encoded_size(chunks: ChunkFormat, values: NDArray[Any], padding: int | float) -> int:
    encoded = chunks.encode(padded(values, chunks.shape, padding))
    return 0 if encoded is None else len(encoded)


def padded(values: NDArray[Any], chunk_shape: Sequence[int], padding: int | float) -> NDArray[Any]:
    """A cell at full chunk size: elements outside the array are ``padding`` (§2.1)."""
    height, width = values.shape[-2:]
    full = tuple(chunk_shape[-values.ndim :])
    if values.shape == full:
        return np.ascontiguousarray(values)
    chunk = np.full(full, padding, values.dtype)
    chunk[..., :height, :width] = values
    return chunk


def fingerprint(series: FrameSeries, options: EncodeOptions) -> Json:
    """What must be the same for an interrupted run to go on: the data, the grid, the options."""
    grid = series.grid
    return {
        "source": series.fingerprint,
        "times": [format_instant(instant) for instant in series.times],
        "bands": [band.to_json() for band in series.bands],
        "grid": [grid.crs, list(grid.transform), grid.height, grid.width],
        "dtype": series.dtype.name,
        "validity": [series.nodata, series.has_mask, series.has_coverage],
        "provenance": series.provenance.to_json() if series.provenance else None,
        "options": [
            options.encoding,
            options.anchor_interval,
            options.compression.to_json(1),
            options.chunk_size,
            options.n_lods,
        ],
    }
