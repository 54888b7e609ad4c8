"""GDAL through its own bindings: the ``osgeo`` of QGIS and of the system's packages. Needs no ``gdal_array``."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from osgeo import gdal, osr

from chronozarr_core.grid import RasterGrid, Transform
from gdal_tools.rasters.port import (
    CACHE_BYTES,
    BandHeader,
    GeoTiffWriter,
    Raster,
    RasterError,
    RasterHeader,
    Warp,
    check_arrived,
    hide_missing,
    written_whole,
)

_NUMPY_NAMES = {
    "Byte": "uint8", "CInt16": "complex_int16", "CInt32": "complex_int32", "CFloat32": "complex64",
    "CFloat64": "complex128",
}  # fmt: skip
_RESAMPLING = {"nearest": "near"}
_IDENTITY = (0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


class OsgeoBackend:
    """See :class:`gdal_tools.rasters.port.RasterBackend`."""

    name = "osgeo"

    def __init__(self) -> None:
        # The block cache belongs to the process: inside QGIS it is QGIS's affair, elsewhere the user's who has set it.
        if "qgis" not in sys.modules and gdal.GetConfigOption("GDAL_CACHEMAX") is None:
            gdal.SetCacheMax(CACHE_BYTES)

    @property
    def gdal_version(self) -> tuple[int, int, int]:
        number = int(gdal.VersionInfo("VERSION_NUM"))
        return number // 1000000, number // 10000 % 100, number // 100 % 100

    def header(self, uri: str) -> RasterHeader:
        return describe(_opened(uri), uri)

    def open(self, uri: str, warp: Warp | None = None) -> Raster:
        return OsgeoRaster(uri, warp)

    def suggest_grid(
        self, uri: str, crs: str, source_crs: str | None, source_transform: Transform | None
    ) -> RasterGrid:
        placed = _placed(_opened(uri), source_crs, source_transform)
        action = f"cannot warp {uri} to {crs}"
        view = _call(action, gdal.AutoCreateWarpedVRT, placed, None, _wkt(crs), gdal.GRA_NearestNeighbour, 0)
        return RasterGrid(crs, _affine(view.GetGeoTransform()), view.RasterYSize, view.RasterXSize)

    @contextlib.contextmanager
    def create_geotiff(
        self, path: Path, width: int, height: int, bands: int, dtype: str, *, mask: bool, block_size: int
    ) -> Iterator[GeoTiffWriter]:
        options = ["TILED=YES", f"BLOCKXSIZE={block_size}", f"BLOCKYSIZE={block_size}", "BIGTIFF=IF_SAFER"]
        action = f"cannot write {path}"
        create = gdal.GetDriverByName("GTiff").Create
        target = _call(action, create, str(path), width, height, bands, _gdal_type(dtype), options)
        if mask:
            with _options(GDAL_TIFF_INTERNAL_MASK="YES"):
                _call(action, target.CreateMaskBand, gdal.GMF_PER_DATASET)
        writer = _Writer(target, path)
        del target
        yield writer
        writer.close()
        check_arrived(path, width * height * bands * np.dtype(dtype).itemsize)

    def copy_cog(self, source: Path, target: Path, options: Mapping[str, str]) -> None:
        creation = [f"{name}={value}" for name, value in options.items()]
        with written_whole(target) as partial, _options(GDAL_PAM_ENABLED="NO"):
            copy = gdal.GetDriverByName("COG").CreateCopy
            action = f"cannot write {target}"
            written = _call(action, copy, str(partial), _opened(str(source)), strict=1, options=creation)
            _call(action, written.FlushCache)
            del written


class _Writer:
    def __init__(self, target: Any, path: Path) -> None:
        self._target, self._path = target, path

    def write(self, row: int, data: NDArray[Any], mask: NDArray[np.uint8] | None) -> None:
        height, width = data.shape[1:]
        action = f"cannot write {self._path}"
        buffer = np.ascontiguousarray(data).tobytes()
        _call(action, self._target.WriteRaster, 0, row, width, height, buffer)
        if mask is not None:
            flags = ((mask != 0).astype(np.uint8) * 255).tobytes()
            band = self._target.GetRasterBand(1).GetMaskBand()
            _call(action, band.WriteRaster, 0, row, width, height, flags)

    def close(self) -> None:
        _call(f"cannot write {self._path}", self._target.FlushCache)
        self._target = None


class OsgeoRaster:
    """See :class:`gdal_tools.rasters.port.Raster`."""

    def __init__(self, uri: str, warp: Warp | None) -> None:
        self._uri = uri
        source = _opened(uri)
        self._missing = None if warp is None else warp.missing(describe(source, uri))
        self._dataset: Any = source if warp is None else _view(source, uri, warp)
        self.header = describe(self._dataset, uri)

    def read(self, rows: slice, cols: slice) -> NDArray[Any]:
        shape = (rows.stop - rows.start, cols.stop - cols.start)
        action = f"cannot read rows {rows.start} to {rows.stop} of {self._uri}"
        raw = _call(action, self._dataset.ReadRaster, cols.start, rows.start, shape[1], shape[0])
        window = np.frombuffer(raw, self.header.bands[0].dtype).reshape(len(self.header.bands), *shape)
        return hide_missing(window, self._missing, self.header.alpha)

    def read_mask(self, rows: slice, cols: slice) -> NDArray[np.uint8]:
        shape = (rows.stop - rows.start, cols.stop - cols.start)
        action = f"cannot read the mask of {self._uri}"
        masks = [self._dataset.GetRasterBand(number).GetMaskBand() for number in _mask_bands(self._dataset)]
        planes = [_call(action, mask.ReadRaster, cols.start, rows.start, shape[1], shape[0]) for mask in masks]
        valid = np.frombuffer(b"".join(planes), np.uint8).reshape(len(planes), *shape)
        return np.asarray(valid.max(axis=0))

    def close(self) -> None:
        self._dataset = None


def _mask_bands(dataset: Any) -> range:
    """Bands whose masks together are the dataset's: a nodata value is each band's own."""
    per_band = dataset.GetRasterBand(1).GetMaskFlags() & gdal.GMF_NODATA
    return range(1, dataset.RasterCount + 1) if per_band else range(1, 2)


def _view(source: Any, uri: str, warp: Warp) -> Any:
    """A warped view of an open dataset; every pixel is transformed exactly, from the source's own pixels."""
    missing = warp.source_missing(describe(source, uri))
    west, south, east, north = warp.grid.bbox
    options = gdal.WarpOptions(
        format="VRT",
        dstSRS=warp.grid.crs,
        outputBounds=(west, south, east, north),
        width=warp.grid.width,
        height=warp.grid.height,
        resampleAlg=_RESAMPLING.get(warp.resampling, warp.resampling),
        errorThreshold=0,
        overviewLevel="NONE",
        srcNodata="none" if missing is None else repr(missing),
        dstNodata="none" if warp.nodata is None else repr(warp.nodata),
        dstAlpha=warp.nodata is None,
        warpOptions=[f"{name}={value}" for name, value in warp.options(missing).items()],
    )
    placed = _placed(source, warp.source_crs, warp.source_transform)
    return _call(f"cannot warp {uri}", gdal.Warp, "", placed, options=options)


def _placed(source: Any, crs: str | None, transform: Transform | None) -> Any:
    """The dataset with the georeferencing that it does not declare itself."""
    if crs is None and transform is None:
        return source
    placed = _call("cannot place a raster", gdal.GetDriverByName("VRT").CreateCopy, "", source)
    if crs is not None:
        _call(f"cannot place a raster in {crs}", placed.SetProjection, _wkt(crs))
    if transform is not None:
        a, b, c, d, e, f = transform
        _call("cannot place a raster", placed.SetGeoTransform, (c, a, b, f, d, e))
    return placed


def _wkt(crs: str) -> str:
    reference = osr.SpatialReference()
    _call(f"GDAL does not know the CRS {crs[:80]!r}", reference.SetFromUserInput, crs)
    return str(reference.ExportToWkt(["FORMAT=WKT2_2019"]))


def describe(dataset: Any, uri: str) -> RasterHeader:
    """The header of an open dataset."""
    bands = [dataset.GetRasterBand(number + 1) for number in range(dataset.RasterCount)]
    transform = dataset.GetGeoTransform(can_return_null=True)
    reference = dataset.GetSpatialRef()
    flags = bands[0].GetMaskFlags()
    return RasterHeader(
        uri=uri,
        driver=dataset.GetDriver().ShortName,
        width=dataset.RasterXSize,
        height=dataset.RasterYSize,
        bands=tuple(_describe_band(band) for band in bands),
        transform=None if transform is None or tuple(transform) == _IDENTITY else _affine(transform),
        crs_wkt=None if reference is None else reference.ExportToWkt(["FORMAT=WKT2_2019"]),
        mask=flags & gdal.GMF_PER_DATASET != 0 and not flags & (gdal.GMF_ALPHA | gdal.GMF_NODATA),
        block_height=bands[0].GetBlockSize()[1],
        tags=dict(dataset.GetMetadata()),
    )


def _describe_band(band: Any) -> BandHeader:
    scale, offset = band.GetScale(), band.GetOffset()
    return BandHeader(
        dtype=_dtype_name(band),
        nodata=band.GetNoDataValue(),
        scale=1.0 if scale is None else scale,
        offset=0.0 if offset is None else offset,
        unit=band.GetUnitType() or "",
        description=band.GetDescription() or "",
        color=gdal.GetColorInterpretationName(band.GetColorInterpretation()).lower(),
    )


def _dtype_name(band: Any) -> str:
    if band.GetMetadataItem("PIXELTYPE", "IMAGE_STRUCTURE") == "SIGNEDBYTE":
        return "int8"  # GDAL before 3.7 has no type for it
    name = gdal.GetDataTypeName(band.DataType)
    return _NUMPY_NAMES.get(name) or str(name.lower())


def _gdal_type(dtype: str) -> int:
    names = {"uint8": "Byte", "uint16": "UInt16", "int16": "Int16", "float32": "Float32"}
    return int(gdal.GetDataTypeByName(names[dtype]))


def _affine(geotransform: tuple[float, ...]) -> Transform:
    c, a, b, f, d, e = geotransform
    return a, b, c, d, e, f


def _opened(uri: str) -> Any:
    """The dataset at a URI; of a container with one subdataset, that one."""
    action = f"cannot open source {uri}"
    dataset = _call(action, gdal.OpenEx, uri, gdal.OF_RASTER | gdal.OF_VERBOSE_ERROR)
    if dataset.RasterCount:
        return dataset
    names = [name for name, _ in dataset.GetSubDatasets()]
    if len(names) == 1:
        return _call(action, gdal.OpenEx, names[0], gdal.OF_RASTER | gdal.OF_VERBOSE_ERROR)
    found = f"{len(names)} subdatasets ({', '.join(names[:10])})" if names else "no raster band"
    raise RasterError(f"{action}: it holds {found}; name one of them as the uri")


def _call(action: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call into GDAL; a failure is a RasterError with GDAL's reason, and nothing is printed.

    Whether GDAL raises is a setting of the process (QGIS's), so a failure is recognised either way.
    """
    with _silence():
        gdal.ErrorReset()
        try:
            result = function(*arguments, **options)
        except RuntimeError as error:
            raise RasterError(f"{action}: {error}") from error
        failed = result is None and gdal.GetLastErrorType() >= gdal.CE_Failure
        if failed or (isinstance(result, int) and result >= gdal.CE_Failure):
            raise RasterError(f"{action}: {gdal.GetLastErrorMsg() or 'GDAL gives no reason'}")
        return result


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    manager = getattr(gdal, "ExceptionMgr", None)  # from GDAL 3.7 on, for this thread alone
    with manager(useExceptions=True) if manager else contextlib.nullcontext():
        gdal.PushErrorHandler("CPLQuietErrorHandler")
        try:
            yield
        finally:
            gdal.PopErrorHandler()


@contextlib.contextmanager
def _options(**options: str) -> Iterator[None]:
    """GDAL's configuration options, for this thread."""
    for name, value in options.items():
        gdal.SetThreadLocalConfigOption(name, value)
    try:
        yield
    finally:
        for name in options:
            gdal.SetThreadLocalConfigOption(name, None)
