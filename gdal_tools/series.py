"""Rasters as a frame series: windows of files, pasted at whole pixels or seen through a warp."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chronozarr_core.dtypes import Nodata
from chronozarr_core.errors import ChronozarrError
from chronozarr_core.frames import Strip
from chronozarr_core.grid import RasterGrid
from chronozarr_core.instants import Instants
from chronozarr_core.model import Band, Provenance
from gdal_tools.placement import Placement
from gdal_tools.rasters import RasterBackend, Warp
from gdal_tools.sources import Source
from gdal_tools.validity import Validity, nan_as, valid_pixels


@dataclass(frozen=True)
class PlacedSource:
    """A source and how it comes onto the target grid: at a placement, or through a warp."""

    source: Source
    placement: Placement | None
    warp: Warp | None


class RasterSeries:
    """Frames of raster files on one grid; see :class:`chronozarr_core.frames.FrameSeries`."""

    has_coverage = False

    def __init__(
        self,
        backend: RasterBackend,
        frames: Sequence[Sequence[PlacedSource]],
        *,
        grid: RasterGrid,
        times: Instants,
        bands: tuple[Band, ...],
        validity: Validity,
        provenance: Provenance | None,
    ) -> None:
        self._backend = backend
        self._frames = frames
        self._open: dict[tuple[int, int], PlacedReader] = {}
        self.grid = grid
        self.times = times
        self.bands = bands
        self.validity = validity
        self.provenance = provenance
        self.dtype = np.dtype(frames[0][0].source.dtype)
        self.random_access = not any(placed.source.is_sequential for frame in frames for placed in frame)

    @property
    def nodata(self) -> Nodata:
        return self.validity.nodata

    @property
    def has_mask(self) -> bool:
        return self.validity.has_mask

    @property
    def fingerprint(self) -> str:
        """Digest of every file's name, size and time of change, and of how it is placed."""
        sources = [
            [*placed.source.stamp, repr(placed.placement), repr(placed.warp), repr(placed.source.missing)]
            for frame in self._frames
            for placed in frame
        ]
        return hashlib.sha256(json.dumps(sources).encode()).hexdigest()

    def read(self, t: int, rows: slice, cols: slice = slice(None)) -> Strip:
        """Pixels of all bands of a date; see :class:`chronozarr_core.frames.FrameSeries`."""
        rows = slice(*rows.indices(self.grid.height)[:2])
        cols = slice(*cols.indices(self.grid.width)[:2])
        pieces = [self._reader(t, number).read(rows, cols) for number in range(len(self._frames[t]))]
        if len(pieces) == 1:
            return pieces[0]
        masks = [piece.mask for piece in pieces if piece.mask is not None]
        return Strip(
            np.concatenate([piece.data for piece in pieces]),
            np.min(masks, axis=0) if masks else None,
        )

    def release(self, t: int) -> None:
        """Close the files of a date."""
        for number in range(len(self._frames[t])):
            reader = self._open.pop((t, number), None)
            if reader is not None:
                reader.close()

    def _reader(self, t: int, number: int) -> PlacedReader:
        if (t, number) not in self._open:
            placed = self._frames[t][number]
            self._open[t, number] = PlacedReader(placed, self._backend, self.grid, self.validity)
        return self._open[t, number]


class PlacedReader:
    """One open source, read in pixels of the target grid."""

    def __init__(self, placed: PlacedSource, backend: RasterBackend, grid: RasterGrid, validity: Validity) -> None:
        self._source = placed.source
        self._placement = placed.placement or Placement(0, 0)
        self._raster = backend.open(placed.source.part.uri, placed.warp)
        self._warped = placed.warp is not None
        self._extent = (grid.height, grid.width) if self._warped else self._own_extent()
        self._validity = validity

    def close(self) -> None:
        self._raster.close()

    def _own_extent(self) -> tuple[int, int]:
        return self._source.header.height, self._source.header.width

    def read(self, rows: slice, cols: slice) -> Strip:
        """A window of the target grid; pixels that the source does not have are nodata, or masked."""
        own_rows, out_rows = _overlap(rows, self._placement.row, self._extent[0])
        own_cols, out_cols = _overlap(cols, self._placement.col, self._extent[1])
        shape = (rows.stop - rows.start, cols.stop - cols.start)
        if (own_rows.stop - own_rows.start, own_cols.stop - own_cols.start) == shape:
            return self._read_own(own_rows, own_cols)
        empty = self._empty(shape)
        if own_rows.start < own_rows.stop and own_cols.start < own_cols.stop:
            part = self._read_own(own_rows, own_cols)
            empty.data[:, out_rows, out_cols] = part.data
            if empty.mask is not None and part.mask is not None:
                empty.mask[out_rows, out_cols] = part.mask
        return empty

    def _empty(self, shape: tuple[int, int]) -> Strip:
        fill = self._validity.nodata or 0
        data = np.full((len(self._source.bands), *shape), fill, self._source.dtype)
        return Strip(data, np.zeros(shape, np.uint8) if self._validity.has_mask else None)

    def _read_own(self, rows: slice, cols: slice) -> Strip:
        """A window of the source itself, in its pixels, rows counted from the north."""
        if self._source.flipped and not self._warped:
            height = self._extent[0]
            strip = self._read_stored(slice(height - rows.stop, height - rows.start), cols)
            return Strip(strip.data[:, ::-1], None if strip.mask is None else strip.mask[::-1])
        return self._read_stored(rows, cols)

    def _read_stored(self, rows: slice, cols: slice) -> Strip:
        raw = self._raster.read(rows, cols)
        alpha = self._raster.header.alpha
        data = raw if alpha is None else _without(raw, alpha)
        if not self._validity.has_mask:
            return Strip(self._without_nan(data))
        plane = raw[alpha] if alpha is not None else None
        if plane is None and self._raster.header.mask:
            plane = self._raster.read_mask(rows, cols)
        valid = valid_pixels(data, self._source.missing, plane)
        return Strip(nan_as(data, 0), valid.astype(np.uint8))

    def _without_nan(self, data: NDArray[Any]) -> NDArray[Any]:
        """NaN beside a declared sentinel is missing too; without one, what it means is for the user to say."""
        if data.dtype.kind != "f" or not np.isnan(data).any():
            return data
        if self._validity.nodata is None:
            raise ChronozarrError(
                f"{self._source.where}: it holds NaN but declares no nodata: say --nodata nan if NaN is missing"
            )
        return nan_as(data, self._validity.nodata)


def _without(raw: NDArray[Any], alpha: int) -> NDArray[Any]:
    if alpha == len(raw) - 1:
        return raw[:alpha]
    return np.delete(raw, alpha, axis=0)


def _overlap(window: slice, offset: int, length: int) -> tuple[slice, slice]:
    """What a source of ``length`` pixels at ``offset`` has of a target window: in its own pixels, and in the window."""
    low = min(max(window.start, offset), window.stop)
    high = max(min(window.stop, offset + length), low)
    return slice(low - offset, high - offset), slice(low - window.start, high - window.start)
