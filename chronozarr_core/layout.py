"""The hierarchy: groups, arrays, attributes, consolidated metadata and key names (§2, §3). Knows no values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chronozarr_core.chunks import ChunkFormat, Compression, codecs_json, parse_codecs
from chronozarr_core.crs import wkt2
from chronozarr_core.dtypes import DTYPES, fill_value
from chronozarr_core.errors import CorruptStoreError, UnsupportedStoreError
from chronozarr_core.grid import RasterGrid
from chronozarr_core.instants import CALENDAR, UNITS
from chronozarr_core.json_values import is_codec, is_count, is_number, list_of, shown
from chronozarr_core.model import Json, Level, StoreMetadata

ROOT = "zarr.json"
PLANE_DTYPE = np.dtype(np.uint8)
COORDINATE_COMPRESSION = Compression("zstd", 5)

_ZARR_CONVENTIONS = "https://raw.githubusercontent.com/zarr-conventions"
_CONVENTIONS = (
    ("proj", "f17cb550-5864-4468-aeb7-f3180cfb622f"),
    ("spatial", "689b58e2-cf7b-45e0-9fff-9cfc0883d6b4"),
)
CONVENTION_ENTRIES = [
    {
        "name": name,
        "uuid": uuid,
        "schema_url": f"{_ZARR_CONVENTIONS}/{name}/refs/tags/v0.1/schema.json",
        "spec_url": f"https://github.com/zarr-conventions/{name}/blob/v0.1/README.md",
    }
    for name, uuid in _CONVENTIONS
]


def node_key(path: str) -> str:
    """Key of a node's metadata document: ``0/data`` to ``0/data/zarr.json``."""
    return f"{path}/{ROOT}" if path else ROOT


def data_key(level: str, variable: str, t: int, row: int, col: int) -> str:
    """Key of an unsharded data chunk (§7.1)."""
    return f"{level}/{variable}/c/{t}/0/{row}/{col}"


def plane_key(level: str, variable: str, t: int, row: int, col: int) -> str:
    """Key of an unsharded mask or coverage chunk, which has no band index (§2.4)."""
    return f"{level}/{variable}/c/{t}/{row}/{col}"


def group_json(attributes: Json) -> Json:
    """A Zarr v3 group document."""
    return {"zarr_format": 3, "node_type": "group", "attributes": attributes}


def array_json(
    shape: Sequence[int],
    data_type: str,
    chunk_shape: Sequence[int],
    fill: int | float | str,
    codecs: list[Json],
    dims: Sequence[str],
    attributes: Json | None = None,
) -> Json:
    """A Zarr v3 array document with ``dimension_names`` and ``_ARRAY_DIMENSIONS`` (§2.2)."""
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk_shape)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill,
        "codecs": codecs,
        "dimension_names": list(dims),
        "attributes": {"_ARRAY_DIMENSIONS": list(dims)} | (attributes or {}),
        "storage_transformers": [],
    }


def georeference(grid: RasterGrid) -> Json:
    """``_CRS``, ``proj:*`` and ``spatial:*`` of an array on a grid, with the conventions' entries (§3.3).

    GDAL 3.12 reads ``_CRS``; GDAL 3.13 and zarr-layer read the conventions, and need their entries on the array.
    """
    code = grid.crs.removeprefix("EPSG:")
    return {
        "zarr_conventions": CONVENTION_ENTRIES,
        "proj:code": grid.crs,
        "spatial:dimensions": ["y", "x"],
        "spatial:shape": [grid.height, grid.width],
        "spatial:transform": list(grid.transform),
        "spatial:bbox": list(grid.bbox),
        "_CRS": {"url": f"http://www.opengis.net/def/crs/EPSG/0/{code}", "wkt": wkt2(grid.crs)},
    }


@dataclass(frozen=True)
class Layout:
    """Everything an unsharded store's documents follow from."""

    metadata: StoreMetadata
    grids: tuple[RasterGrid, ...]
    dtype: np.dtype[Any]
    chunk_size: int
    compression: Compression

    @property
    def n_time(self) -> int:
        return len(self.metadata.times)

    @property
    def n_band(self) -> int:
        return len(self.metadata.bands)

    @property
    def planes(self) -> tuple[str, ...]:
        """Names of the mask and coverage arrays that the store has."""
        return tuple(name for name in (self.metadata.mask_variable, self.metadata.coverage_variable) if name)

    def data_format(self, level: str) -> ChunkFormat:
        """The chunks of ``{level}/{variable}``."""
        shape = (1, self.n_band, self.chunk_size, self.chunk_size)
        fill = fill_value(self.metadata.nodata, self.dtype)
        return ChunkFormat(shape, self.dtype, fill, self.compression, f"{level}/{self.metadata.variable}")

    def plane_format(self, level: str, variable: str) -> ChunkFormat:
        """The chunks of ``{level}/mask`` or ``{level}/coverage``."""
        shape = (1, self.chunk_size, self.chunk_size)
        return ChunkFormat(shape, PLANE_DTYPE, 0, self.compression, f"{level}/{variable}")

    def nodes(self) -> dict[str, Json]:
        """Every document below the root, by path (§2)."""
        nodes = {self.metadata.volatility_path: volatility_json(self.grids[0].cells(self.chunk_size))}
        for level, grid in zip(self.metadata.levels, self.grids, strict=True):
            nodes |= self._level_nodes(level, grid)
        return nodes

    def _level_nodes(self, level: Level, grid: RasterGrid) -> dict[str, Json]:
        attributes = {"crs": grid.crs, "transform": list(grid.transform), "resolution": grid.resolution}
        nodes = {
            level.path: group_json(attributes),
            f"{level.path}/{self.metadata.variable}": self._data_json(level, grid),
        }
        for name in self.planes:
            nodes[f"{level.path}/{name}"] = self._plane_json(level, grid, name)
        return nodes | {f"{level.path}/{name}": node for name, node in coordinates_json(self, grid).items()}

    def _data_json(self, level: Level, grid: RasterGrid) -> Json:
        chunks = self.data_format(level.path)
        return array_json(
            level.shape,
            self.dtype.name,
            chunks.shape,
            chunks.fill_value,
            codecs_json(self.dtype, self.compression),
            ("time", "band", "y", "x"),
            # §2.3 has no attribute without nodata; the authors' validator refuses a store without a null one.
            {"nodata": self.metadata.nodata} | georeference(grid),
        )

    def _plane_json(self, level: Level, grid: RasterGrid, name: str) -> Json:
        return array_json(
            (self.n_time, grid.height, grid.width),
            PLANE_DTYPE.name,
            self.plane_format(level.path, name).shape,
            0,
            codecs_json(PLANE_DTYPE, self.compression),
            ("time", "y", "x"),
            georeference(grid),
        )

    def root(self, nodes: Mapping[str, Json]) -> Json:
        """The root document: ``multiscales``, ``chronozarr`` and the consolidated metadata (§3.1)."""
        attributes = {"multiscales": [multiscales_json(self.metadata)], "chronozarr": self.metadata.to_json()}
        return group_json(attributes) | {"consolidated_metadata": consolidated_json(nodes)}


def coordinates_json(layout: Layout, grid: RasterGrid) -> dict[str, Json]:
    """The documents of ``time``, ``band``, ``y`` and ``x`` of a level, each a single chunk (§2.2)."""

    def coordinate(name: str, size: int, data_type: str, fill: int | float | str, attributes: Json) -> Json:
        itemsize = np.dtype(data_type).itemsize if data_type != "string" else 1
        first: Json = {"name": "bytes", "configuration": {"endian": "little"}}
        if data_type == "string":
            first = {"name": "vlen-utf8", "configuration": {}}
        codecs = [first, COORDINATE_COMPRESSION.to_json(itemsize)]
        return array_json((size,), data_type, (size,), fill, codecs, (name,), attributes)

    return {
        "time": coordinate("time", layout.n_time, "int64", 0, {"units": UNITS, "calendar": CALENDAR}),
        "band": coordinate("band", layout.n_band, "string", "", {}),
        "y": coordinate("y", grid.height, "float64", 0.0, {}),
        "x": coordinate("x", grid.width, "float64", 0.0, {}),
    }


def volatility_json(cells: tuple[int, int]) -> Json:
    """The document of the volatility array: one float32 per level-0 cell, a single chunk (§5)."""
    dtype = np.dtype(np.float32)
    return array_json(cells, dtype.name, cells, 0.0, codecs_json(dtype, COORDINATE_COMPRESSION), ("row", "col"))


def multiscales_json(metadata: StoreMetadata) -> Json:
    """The one ``multiscales`` entry, ndpyramid form, without ``pixels_per_tile`` (§3.4)."""
    return {
        "datasets": [{"path": level.path, "crs": metadata.crs} for level in metadata.levels],
        "type": "reduce",
        "metadata": {"method": "block_mean", "version": f"chronozarr {metadata.spec_version}", "args": []},
    }


def consolidated_json(nodes: Mapping[str, Json]) -> Json:
    """zarr-python 3's inline consolidated metadata: every node below the root, by path (§3.1)."""
    return {"kind": "inline", "must_understand": False, "metadata": dict(sorted(nodes.items()))}


def read_array(document: Mapping[str, Any], path: str) -> tuple[tuple[int, ...], ChunkFormat]:
    """Shape and chunk format of an array that a reader meets (§10.2).

    Raises
    ------
    UnsupportedStoreError
        Its data type, chunk grid, key encoding or codecs are not ones the specification allows.
    CorruptStoreError
        A member that Zarr v3 requires is missing.
    """
    try:
        shape, data_type, fill, codecs = (document[name] for name in ("shape", "data_type", "fill_value", "codecs"))
        chunk_shape = document["chunk_grid"]["configuration"]["chunk_shape"]
        separator = document["chunk_key_encoding"].get("configuration", {}).get("separator", "/")
    except (KeyError, TypeError, AttributeError) as error:
        raise CorruptStoreError(f"{path}/{ROOT} is not a Zarr v3 array: {error!r}") from None
    regular = list_of(is_count)(shape) and list_of(is_count, len(shape))(chunk_shape)
    if not regular or not list_of(is_codec)(codecs):
        raise CorruptStoreError(
            f"{path}/{ROOT} has shape {shown(shape)}, chunks {shown(chunk_shape)} and codecs {shown(codecs)}: expected "
            "as many lengths in both, each at least 1, and a list of codecs that are objects with a name"
        )
    if data_type not in (*DTYPES, "int32", "int64", "float64"):
        raise UnsupportedStoreError(f"{path}: data type {data_type!r} is not supported: expected {', '.join(DTYPES)}")
    if document["chunk_key_encoding"].get("name") != "default" or separator != "/":
        raise UnsupportedStoreError(f"{path}: chunk keys are not the default with separator '/' (§2.1)")
    if not is_number(fill):
        raise UnsupportedStoreError(f"{path}: fill_value {shown(fill)} is not a finite number (§2.1)")
    dtype = np.dtype(data_type)
    return tuple(shape), ChunkFormat(tuple(chunk_shape), dtype, fill, parse_codecs(codecs, dtype, path), path)
