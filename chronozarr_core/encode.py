"""Plan, groups, finalise: how every store is written."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from chronozarr_core.arrays import as_series
from chronozarr_core.chunks import Compression, encode_strings
from chronozarr_core.dtypes import Nodata
from chronozarr_core.errors import ChronozarrError
from chronozarr_core.frames import FrameSeries
from chronozarr_core.groups import CellWriter, GroupResult, GroupRun
from chronozarr_core.instants import as_instants
from chronozarr_core.layout import COORDINATE_COMPRESSION, ROOT, Layout, node_key
from chronozarr_core.model import Band, Provenance, TemporalEncoding
from chronozarr_core.partial import PartialStore
from chronozarr_core.plan import EncodeOptions, Plan, default_workers, fingerprint, make_plan
from chronozarr_core.progress import Progress
from chronozarr_core.storage import to_json_bytes
from chronozarr_core.temporal import DEFAULT_ANCHOR_INTERVAL, Group
from chronozarr_core.volatility import volatility


@dataclass(frozen=True)
class EncodeResult:
    """What was written: objects and bytes count everything in the folder ``path``."""

    path: Path
    temporal: TemporalEncoding
    levels: int
    objects: int
    nbytes: int


def encode(
    data: Any,
    out: str | os.PathLike[str],
    *,
    crs: str | None = None,
    transform: Sequence[float] | None = None,
    times: Any = None,
    bands: Sequence[str | Band | Mapping[str, Any]] | None = None,
    encoding: str = "auto",
    anchor_interval: int = DEFAULT_ANCHOR_INTERVAL,
    codec: str = "zstd",
    level: int | None = None,
    nodata: Nodata | str = "default",
    mask: Any = None,
    coverage: Any = None,
    provenance: Provenance | Mapping[str, Any] | None = None,
    chunk_size: int = 512,
    n_lods: int | None = None,
    workers: int | None = None,
) -> EncodeResult:
    """Write a raster time series as a chronozarr v0.2 store.

    Parameters
    ----------
    data : xarray DataArray or array of uint8, uint16, int16 or float32, shape (time, band, y, x), or a frame series,
        which brings what ``crs`` to ``bands`` and ``nodata`` to ``provenance`` say
    out : folder of the store; absent or empty. Written to ``OUT.partial`` and renamed at the end
    crs : ``EPSG:<code>``, or any definition of a CRS that has one
    transform : six floats in affine order for pixel corners; by default from the coordinates
    times : strictly increasing dates, ISO-8601 text or datetime64; by default the ``time`` coordinate
    bands : names, band objects (§3.6) or :class:`Band`
    encoding : ``auto`` measures and keeps star-delta where it saves 15 %, or ``none`` or ``star-delta`` (§4.3)
    anchor_interval : timesteps between anchors (§4.1)
    codec : ``zstd``, ``gzip``, ``blosc`` or ``blosc-{zstd,lz4}-{shuffle,noshuffle}`` (§8)
    level : of the codec; by default 5 for zstd, 1 for blosc, 6 for gzip
    nodata : a number, None, or ``"default"``: 0 for unsigned integers, else None (§2.3)
    mask : validity, bool or 0 and 1, shape (time, y, x) (§2.4)
    coverage : numbers of observations, shape (time, y, x) (§2.5)
    provenance : where the data come from (§3.8)
    chunk_size : edge of a cell in pixels, even (§2.1)
    n_lods : pyramid levels; by default up to the first of one cell (§6)
    workers : threads; by default one per processor

    Raises
    ------
    ChronozarrError
        Anything that cannot be stored exactly, or that would have to be guessed. Nothing is left behind.
    """
    if isinstance(data, FrameSeries):
        _refuse_twice(crs, transform, times, bands, mask, coverage, provenance, nodata)
        series: FrameSeries = data
    else:
        series = as_series(
            data,
            crs=crs,
            transform=transform,
            times=times,
            bands=bands,
            nodata=nodata,
            mask=mask,
            coverage=coverage,
            provenance=provenance,
        )
    options = EncodeOptions(
        encoding=encoding,
        anchor_interval=anchor_interval,
        compression=Compression.parse(codec, level),
        chunk_size=chunk_size,
        n_lods=n_lods,
        workers=default_workers() if workers is None else workers,
    )
    return encode_series(series, out, options)


def _refuse_twice(*given: Any) -> None:
    if any(value is not None and not (isinstance(value, str) and value == "default") for value in given):
        raise ChronozarrError(
            "a frame series brings its own crs, times, bands, nodata and planes: do not pass them again"
        )


def encode_series(
    series: FrameSeries,
    out: str | os.PathLike[str],
    options: EncodeOptions | None = None,
    *,
    resumable: bool = False,
    resume: bool = False,
    progress: Progress | None = None,
) -> EncodeResult:
    """Write a frame series as a store; see :func:`encode`.

    Parameters
    ----------
    resumable : keep ``OUT.partial`` when the run is interrupted from the keyboard; errors always remove it
    resume : go on with an interrupted run of the same data and options, at its first unfinished group
    progress : told how far the run is
    """
    options = options or EncodeOptions()
    partial = PartialStore(Path(out))
    identity = fingerprint(series, options)
    temporal = partial.start(identity, resume)
    try:
        plan = make_plan(series, options, temporal)
        partial.record_plan(identity, plan.layout.metadata.temporal)
        result = _finalise(plan, partial, list(write_groups(plan, series, partial, progress)))
        partial.publish()
    except KeyboardInterrupt:
        (partial.leave if resumable else partial.discard)()
        raise
    except BaseException:
        partial.discard()
        raise
    finally:
        for t in range(len(series.times)):
            series.release(t)
    return result


def write_groups(
    plan: Plan, series: FrameSeries, partial: PartialStore, progress: Progress | None = None
) -> Iterator[GroupResult]:
    """Write every group that the journal does not hold as finished; yield the results of all, in time order."""
    counter = _Counter(progress, plan.layout.n_time * len(plan.strips()))
    done = {group.anchor: partial.finished_group(group.anchor) for group in plan.groups}
    for group in plan.groups:
        if done[group.anchor] is not None:
            counter.add(len(group.timesteps) * len(plan.strips()))
    todo = [group for group in plan.groups if done[group.anchor] is None]
    written = {result.anchor: result for result in _run_groups(plan, series, partial, todo, counter)}
    for group in plan.groups:
        yield done[group.anchor] or written[group.anchor]


class _Counter:
    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def add(self, steps: int = 1) -> None:
        self._done += steps
        if self._progress is not None:
            self._progress(self._done, self._total)


def _run_groups(
    plan: Plan, series: FrameSeries, partial: PartialStore, todo: Sequence[Group], counter: _Counter
) -> Iterator[GroupResult]:
    """Two groups are in flight, so that no thread idles at the end of one."""
    writer = CellWriter(plan.layout, partial.storage)
    running: deque[GroupRun] = deque()
    with ThreadPoolExecutor(plan.workers) as pool:
        try:
            for group in todo:
                running.append(GroupRun(plan, series, writer, group))
                running[-1].submit(pool)
                if len(running) > 1:
                    yield _finish_group(running.popleft(), partial, counter)
            while running:
                yield _finish_group(running.popleft(), partial, counter)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _finish_group(run: GroupRun, partial: PartialStore, counter: _Counter) -> GroupResult:
    sizes: list[int] = []
    for written in run.results():
        sizes += written
        counter.add()
    result = GroupResult(run.group.anchor, run.sums, len(sizes), sum(sizes))
    partial.record_group(result)
    return result


def _finalise(plan: Plan, partial: PartialStore, results: Sequence[GroupResult]) -> EncodeResult:
    """Volatility, coordinates, child metadata, and the root document last."""
    layout = plan.layout
    nodes = layout.nodes()
    objects = [
        *_coordinate_objects(layout),
        _volatility_object(plan, results),
        *((node_key(path), to_json_bytes(node)) for path, node in nodes.items()),
        (ROOT, to_json_bytes(layout.root(nodes))),
    ]
    partial.write(objects)
    return EncodeResult(
        path=partial.out,
        temporal=layout.metadata.temporal,
        levels=len(layout.grids),
        objects=sum(result.objects for result in results) + len(objects),
        nbytes=sum(result.nbytes for result in results) + sum(len(value) for _, value in objects),
    )


def _volatility_object(plan: Plan, results: Sequence[GroupResult]) -> tuple[str, bytes]:
    layout = plan.layout
    sums = np.sum([result.sums for result in results], axis=0)
    values = volatility(sums, len(plan.references), layout.n_band, layout.grids[0], layout.chunk_size)
    key = f"{layout.metadata.volatility_path}/c/0/0"
    return key, bytes(COORDINATE_COMPRESSION.codec().encode(values.astype("<f4")))


def _coordinate_objects(layout: Layout) -> Iterator[tuple[str, bytes]]:
    compress = COORDINATE_COMPRESSION.codec().encode
    instants = as_instants(list(layout.metadata.times)).astype("<i8")
    for level, grid in zip(layout.metadata.levels, layout.grids, strict=True):
        yield f"{level.path}/time/c/0", bytes(compress(instants))
        yield f"{level.path}/band/c/0", encode_strings(layout.metadata.band_names, COORDINATE_COMPRESSION)
        yield f"{level.path}/y/c/0", bytes(compress(grid.y.astype("<f8")))
        yield f"{level.path}/x/c/0", bytes(compress(grid.x.astype("<f8")))
