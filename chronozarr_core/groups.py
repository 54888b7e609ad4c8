"""Groups: read, take residuals, fill cells, halve, compress, write - strip by strip, timestep by timestep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chronozarr_core.chunks import ChunkFormat
from chronozarr_core.errors import ChronozarrError
from chronozarr_core.frames import FrameSeries, Strip
from chronozarr_core.instants import format_instant
from chronozarr_core.layout import Layout, data_key, plane_key
from chronozarr_core.plan import Plan, padded
from chronozarr_core.pyramid import LevelStrip, PyramidBuilder
from chronozarr_core.storage import LocalStorage
from chronozarr_core.temporal import Group, absolute_difference_sum, residual


@dataclass
class GroupResult:
    """What a finished group leaves besides its objects.

    ``sums`` is the sum of |source - anchor| per level-0 cell over the group's members (§5), shape (rows, cols).
    """

    anchor: int
    sums: NDArray[Any]
    objects: int = 0
    nbytes: int = 0


class CellWriter:
    """Writes rows of cells of any level of one store."""

    def __init__(self, layout: Layout, storage: LocalStorage) -> None:
        self._layout = layout
        self._storage = storage
        metadata = layout.metadata
        self._data = [layout.data_format(level.path) for level in metadata.levels]
        self._planes = {name: layout.plane_format("", name) for name in layout.planes}

    def write(self, t: int, row: LevelStrip, anchor: LevelStrip | None) -> Iterator[int]:
        """Write a complete row of cells, as residuals where an anchor row is given; yield each object's bytes."""
        metadata = self._layout.metadata
        level = metadata.levels[row.level].path
        for col, cols in enumerate(self._columns(row.strip)):
            chunk = self._data_chunk(self._data[row.level], row.strip, anchor and anchor.strip, cols)
            key = data_key(level, metadata.variable, t, row.cell_row, col)
            yield from self._put(key, self._data[row.level], chunk)
            for name, plane in self._plane_strips(row.strip):
                chunks = self._planes[name]
                key = plane_key(level, name, t, row.cell_row, col)
                yield from self._put(key, chunks, padded(plane[:, cols], chunks.shape[1:], 0))

    def _columns(self, strip: Strip) -> list[slice]:
        size, width = self._layout.chunk_size, strip.data.shape[2]
        return [slice(col, min(col + size, width)) for col in range(0, width, size)]

    def _data_chunk(self, chunks: ChunkFormat, strip: Strip, anchor: Strip | None, cols: slice) -> NDArray[Any]:
        """Padding is ``fill_value`` in true values and 0 in residuals (§2.1)."""
        source = strip.data[:, :, cols]
        if anchor is None:
            return padded(source, chunks.shape, chunks.fill_value)
        return padded(residual(source, anchor.data[:, :, cols]), chunks.shape, 0)

    def _plane_strips(self, strip: Strip) -> Iterator[tuple[str, NDArray[np.uint8]]]:
        metadata = self._layout.metadata
        for name, plane in ((metadata.mask_variable, strip.mask), (metadata.coverage_variable, strip.coverage)):
            if name is not None and plane is not None:
                yield name, plane

    def _put(self, key: str, chunks: ChunkFormat, chunk: NDArray[Any]) -> Iterator[int]:
        encoded = chunks.encode(chunk)
        if encoded is not None:
            self._storage.put(key, encoded)
            yield len(encoded)


class GroupRun:
    """One group's tasks on a pool of threads.

    Tasks are submitted in the order (strip, timestep), the anchor first. A task waits only for tasks submitted before
    it, which a pool has started before it, so any number of threads makes progress.
    """

    def __init__(self, plan: Plan, series: FrameSeries, writer: CellWriter, group: Group) -> None:
        layout = plan.layout
        self.group = group
        self._series = series
        self._writer = writer
        self._star_delta = layout.metadata.temporal.is_star_delta
        self._chunk_size = layout.chunk_size
        self._strips = plan.strips()
        self._builders = {
            t: PyramidBuilder(layout.grids, layout.chunk_size, layout.metadata.nodata) for t in group.timesteps
        }
        dtype = np.float64 if layout.dtype.kind == "f" else np.int64
        self._sums = np.zeros((len(group.timesteps), *layout.grids[0].cells(layout.chunk_size)), dtype)
        self._tasks: list[Future[list[int]]] = []

    def submit(self, pool: Executor) -> None:
        """Hand every strip of every timestep to the pool."""
        previous: dict[int, Future[list[int]]] = {}
        for number, rows in enumerate(self._strips):
            anchor: Future[list[LevelStrip]] = Future()
            for t in self.group.timesteps:
                previous[t] = pool.submit(self._strip, t, number, rows, anchor, previous.get(t))
                self._tasks.append(previous[t])

    def results(self) -> Iterator[list[int]]:
        """Bytes of the objects of each strip of each timestep, as they are written."""
        for task in self._tasks:
            yield task.result()

    @property
    def sums(self) -> NDArray[Any]:
        """Added in timestep order, so that floating-point sums do not depend on the threads."""
        return np.asarray(self._sums.sum(axis=0))

    def _strip(
        self,
        t: int,
        number: int,
        rows: slice,
        anchor: Future[list[LevelStrip]],
        previous: Future[list[int]] | None,
    ) -> list[int]:
        try:
            if previous is not None:
                previous.result()
            own = list(self._builders[t].push(self._read(t, rows)))
        except BaseException as error:
            if t == self.group.anchor:
                anchor.set_exception(error)
            raise
        if t == self.group.anchor:
            anchor.set_result(own)
        written = self._write(t, own, anchor.result())
        if number == len(self._strips) - 1:
            self._builders.pop(t)
            self._series.release(t)
        return written

    def _read(self, t: int, rows: slice) -> Strip:
        return without_nan(self._series.read(t, rows), t, self._series)

    def _write(self, t: int, own: Sequence[LevelStrip], anchor: Sequence[LevelStrip]) -> list[int]:
        written: list[int] = []
        for row, anchor_row in zip(own, anchor, strict=True):
            refers = t != self.group.anchor
            written += self._writer.write(t, row, anchor_row if refers and self._star_delta else None)
            if refers and row.level == 0:
                self._add_differences(t, row, anchor_row)
        return written

    def _add_differences(self, t: int, row: LevelStrip, anchor: LevelStrip) -> None:
        sums = self._sums[self.group.timesteps.index(t), row.cell_row]
        for col in range(len(sums)):
            cols = slice(col * self._chunk_size, (col + 1) * self._chunk_size)
            sums[col] = absolute_difference_sum(row.strip.data[:, :, cols], anchor.strip.data[:, :, cols])


def without_nan(strip: Strip, t: int, series: FrameSeries) -> Strip:
    """The strip with NaN under the mask as 0; NaN in a valid pixel is refused, since no store holds it (§2.3)."""
    if strip.data.dtype.kind != "f":
        return strip
    missing = np.isnan(strip.data)
    if not missing.any():
        return strip
    if strip.mask is None or (missing & (strip.mask != 0)).any():
        raise ChronozarrError(
            f"timestep {t} ({format_instant(series.times[t])}) holds NaN in valid pixels, which a store does not: "
            "pass a mask that is 0 there, or fill them with a nodata value"
        )
    return strip._replace(data=np.where(missing, strip.data.dtype.type(0), strip.data))
