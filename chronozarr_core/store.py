"""Reading a store: ``open_store`` and :class:`ChronoStore` (§10). Writes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from pathlib import Path
from threading import local
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chronozarr_core.cache import ChunkCache
from chronozarr_core.chunks import ChunkFormat
from chronozarr_core.dtypes import DTYPES, Nodata
from chronozarr_core.errors import CorruptStoreError, SelectionError, StoreNotFoundError, UnsupportedStoreError
from chronozarr_core.frames import Strip
from chronozarr_core.grid import RasterGrid
from chronozarr_core.instants import Instants, as_instants
from chronozarr_core.json_values import shown
from chronozarr_core.layout import PLANE_DTYPE, ROOT, data_key, node_key, plane_key, read_array
from chronozarr_core.model import Band, Json, Level, Provenance, StoreMetadata
from chronozarr_core.plan import default_workers
from chronozarr_core.storage import LocalStorage, Storage, read_json
from chronozarr_core.temporal import reconstruct
from chronozarr_core.windows import Piece, Window

if TYPE_CHECKING:
    import xarray

ANCHOR_CACHE_BYTES = 256 * 1024 * 1024
READ_VERSIONS = ("0.1.", "0.2.")


def open_store(path: str | os.PathLike[str]) -> ChronoStore:
    """Open a chronozarr store for reading; reads the root document only (§10.1).

    Raises
    ------
    StoreNotFoundError
        There is no ``zarr.json`` at ``path``.
    UnsupportedStoreError
        It is no chronozarr store, or one of another version or encoding than 0.1.x and 0.2.x define.
    CorruptStoreError
        Its metadata contradict the specification.
    """
    return ChronoStore(LocalStorage(Path(path)))


class PixelSeries(NamedTuple):
    """One pixel over time.

    Attributes
    ----------
    times : datetime64[ms], shape (time,)
    values : stored values, shape (time, band)
    valid : bool, shape (time, band)
    physical : float64, ``stored * scale + offset``, NaN where invalid, shape (time, band)
    """

    times: Instants
    values: NDArray[Any]
    valid: NDArray[np.bool_]
    physical: NDArray[np.float64]


class ChronoStore:
    """An open store. Reads reconstruct the temporal encoding and return exact stored values."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        root = read_json(storage, ROOT)
        if root is None:
            raise StoreNotFoundError(f"no chronozarr store at {storage.location}: there is no {ROOT}")
        self.attributes: Json = _object(root, "attributes", ROOT)
        self.metadata = read_metadata(self.attributes, storage.location)
        self._consolidated: Json = _object(_object(root, "consolidated_metadata", ROOT), "metadata", ROOT)
        self.times: Instants = as_instants(list(self.metadata.times))
        self._arrays: dict[str, ChunkFormat] = {}
        self._anchors = ChunkCache(ANCHOR_CACHE_BYTES)
        self._local = local()

    @property
    def location(self) -> str:
        """Path or URL of the store."""
        return self._storage.location

    @property
    def bands(self) -> tuple[Band, ...]:
        return self.metadata.bands

    @property
    def nodata(self) -> Nodata:
        return self.metadata.nodata

    @property
    def crs(self) -> str:
        return self.metadata.crs

    @property
    def has_mask(self) -> bool:
        return self.metadata.mask_variable is not None

    @property
    def has_coverage(self) -> bool:
        return self.metadata.coverage_variable is not None

    @property
    def provenance(self) -> Provenance | None:
        return self.metadata.provenance

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """Every level, from the ``levels`` mirror or, in a store without it, from the level groups (§10.2)."""
        return self.metadata.levels or tuple(self._levels_from_groups())

    @cached_property
    def grids(self) -> tuple[RasterGrid, ...]:
        """The grid of each level."""
        return tuple(RasterGrid(self.crs, level.transform, *level.shape[2:]) for level in self.levels)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._data(0).dtype

    @property
    def chunk_size(self) -> int:
        """Edge of a cell in pixels, from the data array's chunk shape (§2.1)."""
        return self._data(0).shape[-1]

    def array_document(self, path: str) -> Json:
        """The metadata document of a node, from the consolidated metadata or its own ``zarr.json`` (§3.1).

        Raises
        ------
        CorruptStoreError
            There is none.
        """
        if path in self._consolidated:
            return _object(self._consolidated, path, "consolidated_metadata of zarr.json")
        document = read_json(self._storage, node_key(path))
        if document is None:
            raise CorruptStoreError(f"{self.location}: {node_key(path)} is missing")
        return document

    def select_level(self, resolution: float) -> int:
        """The largest level whose resolution does not exceed ``resolution`` in CRS units; 0 if none (§10.3)."""
        fitting = [k for k, level in enumerate(self.levels) if level.resolution <= resolution]
        return max(fitting, default=0)

    def read(self, t: int, lod: int = 0) -> NDArray[Any]:
        """One timestep of a level, shape (band, y, x)."""
        return self.read_window(t, slice(None), slice(None), lod)

    def read_cell(self, t: int, row: int, col: int, lod: int = 0) -> NDArray[Any]:
        """One cell of a timestep, shape (band, rows, cols), without padding; at most two chunk reads (§10.4)."""
        lod = self._lod(lod)
        rows, cols = self.levels[lod].grid
        if not (0 <= row < rows and 0 <= col < cols):
            raise SelectionError(f"cell ({row}, {col}) does not exist: level {lod} has {rows} x {cols} cells")
        size = self.chunk_size
        return self.read_window(
            t,
            slice(row * size, min((row + 1) * size, self.grids[lod].height)),
            slice(col * size, min((col + 1) * size, self.grids[lod].width)),
            lod,
        )

    def read_window(self, t: int, rows: slice, cols: slice, lod: int = 0) -> NDArray[Any]:
        """Pixels ``rows`` x ``cols`` of a timestep, shape (band, rows, cols); slices as numpy takes them, step 1.

        Raises
        ------
        SelectionError
            The store has no such timestep or level, or the slices have a step.
        CorruptStoreError
            A chunk does not decode; the message names its key.
        """
        t, lod = self._timestep(t), self._lod(lod)
        window = Window(self.grids[lod], rows, cols)
        out = np.empty((len(self.bands), *window.shape), self._data(lod).dtype)
        self._each(partial(self._fill_data, out, t, lod), window.pieces(self.chunk_size))
        return out

    def read_mask(
        self, t: int, lod: int = 0, rows: slice = slice(None), cols: slice = slice(None)
    ) -> NDArray[np.uint8] | None:
        """Validity of a timestep, 1 valid and 0 invalid, shape (y, x); None where the store has no mask (§2.4)."""
        return self._read_plane(self.metadata.mask_variable, t, lod, rows, cols)

    def read_coverage(
        self, t: int, lod: int = 0, rows: slice = slice(None), cols: slice = slice(None)
    ) -> NDArray[np.uint8] | None:
        """Observations behind each pixel, shape (y, x); None where the store has no coverage (§2.5)."""
        return self._read_plane(self.metadata.coverage_variable, t, lod, rows, cols)

    def read_valid(
        self, t: int, lod: int = 0, rows: slice = slice(None), cols: slice = slice(None)
    ) -> NDArray[np.bool_]:
        """The validity rule (§2.3), shape (band, y, x): the mask; without one, value != nodata; else True."""
        return self._valid(self.read_window(t, rows, cols, lod), self.read_mask(t, lod, rows, cols))

    def read_physical(
        self, t: int, lod: int = 0, rows: slice = slice(None), cols: slice = slice(None)
    ) -> NDArray[np.float32]:
        """``stored * scale + offset`` computed in float64, NaN where invalid, shape (band, y, x) (§3.6)."""
        values = self.read_window(t, rows, cols, lod)
        return self._physical(values, self._valid(values, self.read_mask(t, lod, rows, cols))).astype(np.float32)

    def read_pixel(
        self,
        row: int | None = None,
        col: int | None = None,
        *,
        x: float | None = None,
        y: float | None = None,
        lod: int = 0,
    ) -> PixelSeries:
        """One pixel over time, by row and column or by projected coordinates.

        Raises
        ------
        SelectionError
            The pixel is outside the store, or it is given both ways or neither.
        """
        row, col = self._pixel(row, col, x, y, self._lod(lod))
        rows, cols = slice(row, row + 1), slice(col, col + 1)
        history = [self.read_window(t, rows, cols, lod) for t in range(len(self.times))]
        valid = [self._valid(values, self.read_mask(t, lod, rows, cols)) for t, values in enumerate(history)]
        physical = [self._physical(*frame) for frame in zip(history, valid, strict=True)]
        return PixelSeries(self.times, *(np.stack(frames)[:, :, 0, 0] for frames in (history, valid, physical)))

    def to_xarray(
        self, lod: int = 0, times: int | slice | Sequence[int] | None = None, physical: bool = False
    ) -> xarray.DataArray:
        """A level in memory as a DataArray (time, band, y, x).

        Parameters
        ----------
        times : a timestep, a slice or a list of timesteps; None is all of them
        physical : float32 physical values, NaN where invalid, instead of stored values

        The mask and the coverage, where the store has them, are coordinates (time, y, x).
        """
        import xarray as xr  # noqa: PLC0415  # QGIS brings none, and everything else works without

        lod = self._lod(lod)
        chosen = self._timesteps(times)
        grid = self.grids[lod]
        read = self.read_physical if physical else self.read
        empty = np.empty((0, len(self.bands), grid.height, grid.width), self.dtype)
        data = np.stack([read(t, lod) for t in chosen]) if chosen else empty
        coords: dict[str, Any] = {
            "time": self.times[chosen].astype("datetime64[ns]"),
            "band": list(self.metadata.band_names),
            "y": grid.y,
            "x": grid.x,
        }
        for name, read_plane in (("mask", self.read_mask), ("coverage", self.read_coverage)):
            planes = [read_plane(t, lod) for t in chosen]
            if planes and planes[0] is not None:
                coords[name] = (("time", "y", "x"), np.stack([p for p in planes if p is not None]))
        attributes: Json = {"crs": self.crs, "transform": list(grid.transform)}
        if self.nodata is not None and not physical:
            attributes["nodata"] = self.nodata
        return xr.DataArray(data, coords, ("time", "band", "y", "x"), self.metadata.variable, attributes)

    def _levels_from_groups(self) -> Iterator[Level]:
        try:
            paths = [str(dataset["path"]) for dataset in self.attributes["multiscales"][0]["datasets"]]
        except (KeyError, IndexError, TypeError):
            raise CorruptStoreError(f"{self.location} lists its levels neither in chronozarr nor multiscales") from None
        for path in paths:
            attributes = _object(self.array_document(path), "attributes", node_key(path))
            shape, chunks = read_array(self._array_json(path), path)
            size = chunks.shape[-1]
            yield Level.from_json(
                {
                    "path": path,
                    "resolution": attributes.get("resolution"),
                    "transform": attributes.get("transform", ()),
                    "shape": shape,
                    "grid": [-(-length // size) for length in shape[2:]],
                }
            )

    def _array_json(self, level: str) -> Json:
        return self.array_document(f"{level}/{self.metadata.variable}")

    def _data(self, lod: int) -> ChunkFormat:
        level = self.levels[lod]
        chunks = self._chunks(f"{level.path}/{self.metadata.variable}", level.shape)
        if chunks.dtype.name not in DTYPES or chunks.shape[:2] != (1, len(self.bands)):
            raise UnsupportedStoreError(
                f"{self.location}: {chunks.key} has data type {chunks.dtype} and chunks {chunks.shape}: "
                f"expected one of {', '.join(DTYPES)} and (1, {len(self.bands)}, cs, cs) (§2.1)"
            )
        if lod:
            self._check_chunks(chunks, self._data(0).shape, self.dtype)
        return chunks

    def _plane(self, lod: int, name: str) -> ChunkFormat:
        level = self.levels[lod]
        chunks = self._chunks(f"{level.path}/{name}", (level.shape[0], *level.shape[2:]))
        self._check_chunks(chunks, (1, self.chunk_size, self.chunk_size), PLANE_DTYPE)
        return chunks

    def _check_chunks(self, chunks: ChunkFormat, shape: Sequence[int], dtype: np.dtype[Any]) -> None:
        if chunks.shape != tuple(shape) or chunks.dtype != dtype:
            raise CorruptStoreError(
                f"{self.location}: {chunks.key} has data type {chunks.dtype} and chunks {chunks.shape}: expected "
                f"{dtype} and {tuple(shape)} as level 0 has them (§2.1, §2.4)"
            )

    def _chunks(self, path: str, expected: Sequence[int]) -> ChunkFormat:
        if path not in self._arrays:
            shape, chunks = read_array(self.array_document(path), path)
            if shape != tuple(expected):
                raise CorruptStoreError(
                    f"{self.location}: {path} has shape {shape}, chronozarr.levels says {tuple(expected)} (§3.7)"
                )
            self._arrays[path] = chunks
        return self._arrays[path]

    def _fill_data(self, out: NDArray[Any], t: int, lod: int, piece: Piece) -> None:
        chunks = self._data(lod)
        target = out[:, piece.out_rows, piece.out_cols]
        anchor = self.metadata.temporal.delta_reference.get(t) if self.metadata.temporal.is_star_delta else None
        stored = self._chunk(chunks, t, lod, piece, keep=t in self.metadata.temporal.anchor_indices)
        part = stored[0, :, piece.rows, piece.cols]
        if anchor is None:
            target[...] = part
        else:
            true = self._chunk(chunks, anchor, lod, piece, keep=True)
            reconstruct(part, true[0, :, piece.rows, piece.cols], out=target)

    def _chunk(self, chunks: ChunkFormat, t: int, lod: int, piece: Piece, keep: bool) -> NDArray[Any]:
        key = data_key(self.levels[lod].path, self.metadata.variable, t, piece.row, piece.col)
        cached = self._anchors.get(key)
        if cached is None:
            scratch = None if keep else self._scratch(chunks)
            cached = chunks.decode(self._storage.get(key), f"{self.location}/{key}", scratch)
            if keep:
                self._anchors.put(key, cached)
        return cached

    def _scratch(self, chunks: ChunkFormat) -> NDArray[Any]:
        """The calling thread's buffer for a chunk that is copied out at once."""
        buffer: NDArray[Any] | None = getattr(self._local, "buffer", None)
        if buffer is None:
            buffer = self._local.buffer = chunks.empty()
        return buffer

    def _read_plane(self, name: str | None, t: int, lod: int, rows: slice, cols: slice) -> NDArray[np.uint8] | None:
        if name is None:
            return None
        t, lod = self._timestep(t), self._lod(lod)
        window = Window(self.grids[lod], rows, cols)
        out = np.empty(window.shape, np.uint8)
        chunks = self._plane(lod, name)

        def fill(piece: Piece) -> None:
            key = plane_key(self.levels[lod].path, name, t, piece.row, piece.col)
            decoded = chunks.decode(self._storage.get(key), f"{self.location}/{key}")
            out[piece.out_rows, piece.out_cols] = decoded[0, piece.rows, piece.cols]

        self._each(fill, window.pieces(self.chunk_size))
        return out

    def _each(self, fill: Any, pieces: Iterator[Piece]) -> None:
        todo = list(pieces)
        if len(todo) == 1:
            fill(todo[0])
        else:
            list(self._pool.map(fill, todo))

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(default_workers(), thread_name_prefix="chronozarr")

    def _valid(self, values: NDArray[Any], mask: NDArray[np.uint8] | None) -> NDArray[np.bool_]:
        if mask is not None:
            return np.broadcast_to(mask != 0, values.shape)
        if self.nodata is not None:
            return np.asarray(values != self.nodata)
        return np.ones(values.shape, bool)

    def _physical(self, values: NDArray[Any], valid: NDArray[np.bool_]) -> NDArray[np.float64]:
        scale = np.array([band.scale for band in self.bands], np.float64)[:, None, None]
        offset = np.array([band.offset for band in self.bands], np.float64)[:, None, None]
        return np.where(valid, values * scale + offset, np.nan)

    def _pixel(self, row: int | None, col: int | None, x: float | None, y: float | None, lod: int) -> tuple[int, int]:
        grid = self.grids[lod]
        if row is not None and col is not None and x is None and y is None:
            if not (0 <= row < grid.height and 0 <= col < grid.width):
                raise SelectionError(
                    f"pixel ({row}, {col}) does not exist: level {lod} has {grid.height} x {grid.width} pixels"
                )
            return row, col
        if x is not None and y is not None and row is None and col is None:
            return grid.index(x, y)
        raise SelectionError("give a pixel either by row and col or by x and y")

    def _timestep(self, t: int) -> int:
        n_time = len(self.times)
        if not -n_time <= t < n_time:
            raise SelectionError(f"timestep {t} does not exist: the store has {n_time}, 0 to {n_time - 1}")
        return int(t) % n_time

    def _lod(self, lod: int) -> int:
        if not 0 <= lod < len(self.levels):
            raise SelectionError(f"level {lod} does not exist: the store has {len(self.levels)}")
        return int(lod)

    def _timesteps(self, times: int | slice | Sequence[int] | None) -> list[int]:
        if times is None:
            return list(range(len(self.times)))
        if isinstance(times, slice):
            return list(range(len(self.times))[times])
        chosen: ArrayLike = [times] if isinstance(times, int | np.integer) else times
        return [self._timestep(int(t)) for t in np.asarray(chosen).ravel()]


def _object(document: Json, name: str, where: str) -> Json:
    """A member that is an object, empty where it is absent or null."""
    value = document.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise CorruptStoreError(f"{where} has {name} {shown(value)}: expected an object")
    return value


def read_metadata(attributes: Json, location: str) -> StoreMetadata:
    """The ``chronozarr`` block of a store's root attributes, where this reader supports it (§10.1)."""
    block = attributes.get("chronozarr")
    if not isinstance(block, dict):
        raise UnsupportedStoreError(f"{location} is a Zarr group without a chronozarr block: not a chronozarr store")
    version = str(block.get("spec_version"))
    if not version.startswith(READ_VERSIONS):
        raise UnsupportedStoreError(f"{location} has spec_version {version!r}: this reader reads 0.1.x and 0.2.x")
    metadata = StoreMetadata.from_json(block)
    if metadata.temporal.encoding not in ("none", "star-delta"):
        raise UnsupportedStoreError(
            f"{location} has temporal encoding {metadata.temporal.encoding!r}: expected 'none' or 'star-delta' (§4.1)"
        )
    return metadata


class StoreSeries:
    """An existing store as a frame series: what re-encoding reads."""

    random_access = True

    def __init__(self, store: ChronoStore) -> None:
        self._store = store
        self.grid = store.grids[0]
        self.times = store.times
        self.bands = store.bands
        self.dtype = store.dtype
        self.nodata = store.nodata
        self.has_mask = store.has_mask
        self.has_coverage = store.has_coverage
        self.provenance = store.provenance
        self.fingerprint = store.location

    def read(self, t: int, rows: slice, cols: slice = slice(None)) -> Strip:
        """See :class:`chronozarr_core.frames.FrameSeries`."""
        return Strip(
            self._store.read_window(t, rows, cols),
            self._store.read_mask(t, 0, rows, cols),
            self._store.read_coverage(t, 0, rows, cols),
        )

    def release(self, t: int) -> None:
        """Nothing is held open."""
