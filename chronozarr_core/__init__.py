"""chronozarr v0.2: an open Zarr v3 layout for raster time series. Encode, read and validate stores."""

from chronozarr_core.arrays import ArraySeries
from chronozarr_core.chunks import Compression
from chronozarr_core.encode import EncodeResult, encode, encode_series
from chronozarr_core.errors import (
    ChronozarrError,
    CorruptStoreError,
    SelectionError,
    StoreNotFoundError,
    UnsupportedStoreError,
)
from chronozarr_core.frames import FrameSeries, Strip
from chronozarr_core.grid import RasterGrid
from chronozarr_core.model import Band, Level, Provenance, StoreMetadata, TemporalEncoding
from chronozarr_core.plan import EncodeOptions
from chronozarr_core.storage import StorageError
from chronozarr_core.store import ChronoStore, PixelSeries, StoreSeries, open_store
from chronozarr_core.validate import Finding, validate

__all__ = [
    "ArraySeries",
    "Band",
    "ChronoStore",
    "ChronozarrError",
    "Compression",
    "CorruptStoreError",
    "EncodeOptions",
    "EncodeResult",
    "Finding",
    "FrameSeries",
    "Level",
    "PixelSeries",
    "Provenance",
    "RasterGrid",
    "SelectionError",
    "StorageError",
    "StoreMetadata",
    "StoreNotFoundError",
    "StoreSeries",
    "Strip",
    "TemporalEncoding",
    "UnsupportedStoreError",
    "encode",
    "encode_series",
    "open_store",
    "validate",
]
