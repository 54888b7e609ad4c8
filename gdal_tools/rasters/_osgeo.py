"""GDAL through its own bindings: the ``osgeo`` of QGIS and of the system's packages. Needs no ``gdal_array``."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from osgeo import gdal

from chronozarr_core.grid import RasterGrid, Transform
from gdal_tools.rasters.port import BandHeader, GeoTiffWriter, Raster, RasterError, RasterHeader, Warp

CACHE_BYTES = 64 * 1024 * 1024
_NUMPY_NAMES = {"Byte": "uint8", "CFloat32": "complex64", "CFloat64": "complex128"}
_RESAMPLING = {"nearest": "near"}


class OsgeoBackend:
    """See :class:`gdal_tools.rasters.port.RasterBackend`."""

    name = "osgeo"

    def __init__(self) -> None:
        if "qgis" not in sys.modules:  # the block cache of QGIS is QGIS's own affair
            gdal.SetCacheMax(CACHE_BYTES)

    @property
    def gdal_version(self) -> tuple[int, int, int]:
        number = int(gdal.VersionInfo("VERSION_NUM"))
        return number // 1000000, number // 10000 % 100, number // 100 % 100

    def header(self, uri: str) -> RasterHeader:
        return describe(_opened(uri), uri)

    def open(self, uri: str, warp: Warp | None = None) -> Raster:
        return OsgeoRaster(uri, warp)

    def suggest_grid(self, uri: str, crs: str, source_crs: str | None, source_transform: Transform | None) -> RasterGrid:
        source = _opened(uri)
        placed = _placed(source, uri, source_transform)
        arguments = {"format": "VRT", "dstSRS": crs} | ({"srcSRS": source_crs} if source_crs else {})
        view = _call(f"cannot warp {uri} to {crs}", gdal.Warp, "", placed, **arguments)
        return RasterGrid(crs, _affine(view.GetGeoTransform()), view.RasterYSize, view.RasterXSize)

    @contextlib.contextmanager
    def create_geotiff(
        self, path: Path, width: int, height: int, bands: int, dtype: str, *, mask: bool, block_size: int
    ) -> Iterator[GeoTiffWriter]:
        options = ["TILED=YES", f"BLOCKXSIZE={block_size}", f"BLOCKYSIZE={block_size}", "BIGTIFF=IF_SAFER"]
        driver = gdal.GetDriverByName("GTiff")
        target = _call(f"cannot write {path}", driver.Create, str(path), width, height, bands, _gdal_type(dtype), options)
        if mask:
            with _internal_mask():
                _call(f"cannot write {path}", target.CreateMaskBand, gdal.GMF_PER_DATASET)
        writer = _Writer(target, path)
        yield writer
        writer.close()
        pixels = width * height * bands * np.dtype(dtype).itemsize
        if path.stat().st_size < pixels:
            # An uncompressed GeoTIFF on a full disk is closed without an error.
            raise RasterError(f"cannot write {path}: only {path.stat().st_size} of {pixels} bytes arrived; is the disk full?")

    def copy_cog(self, source: Path, target: Path, options: Mapping[str, str]) -> None:
        partial = target.with_name(target.name + ".partial")
        try:
            dataset = _opened(str(source))
            creation = [f"{name}={value}" for name, value in options.items()]
            copy = gdal.GetDriverByName("COG").CreateCopy
            written = _call(f"cannot write {target}", copy, str(partial), dataset, strict=1, options=creation)
            del written
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)


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
            with _internal_mask():
                band = self._target.GetRasterBand(1).GetMaskBand()
                _call(action, band.WriteRaster, 0, row, width, height, flags)

    def close(self) -> None:
        _call(f"cannot write {self._path}", self._target.FlushCache)
        self._target = None


class OsgeoRaster:
    """See :class:`gdal_tools.rasters.port.Raster`."""

    def __init__(self, uri: str, warp: Warp | None) -> None:
        self._uri = uri
        self._source: Any = _opened(uri)
        self._dataset: Any = self._source if warp is None else _view(self._source, uri, warp)
        self.header = describe(self._dataset, uri)

    def read(self, rows: slice, cols: slice) -> NDArray[Any]:
        shape = (rows.stop - rows.start, cols.stop - cols.start)
        action = f"cannot read rows {rows.start} to {rows.stop} of {self._uri}"
        raw = _call(action, self._dataset.ReadRaster, cols.start, rows.start, shape[1], shape[0])
        return np.frombuffer(raw, self.header.bands[0].dtype).reshape(len(self.header.bands), *shape)

    def read_mask(self, rows: slice, cols: slice) -> NDArray[np.uint8]:
        shape = (rows.stop - rows.start, cols.stop - cols.start)
        band = self._dataset.GetRasterBand(1).GetMaskBand()
        action = f"cannot read the mask of {self._uri}"
        raw = _call(action, band.ReadRaster, cols.start, rows.start, shape[1], shape[0])
        return np.frombuffer(raw, np.uint8).reshape(shape)

    def close(self) -> None:
        self._dataset = None
        self._source = None


def _view(source: Any, uri: str, warp: Warp) -> Any:
    """A warped view of an open dataset; every pixel is transformed exactly."""
    west, south, east, north = warp.grid.bbox
    arguments: dict[str, Any] = {
        "format": "VRT", "dstSRS": warp.grid.crs, "outputBounds": (west, south, east, north),
        "width": warp.grid.width, "height": warp.grid.height, "errorThreshold": 0,
        "resampleAlg": _RESAMPLING.get(warp.resampling, warp.resampling), "multithread": False,
    }  # fmt: skip
    if warp.source_crs is not None:
        arguments["srcSRS"] = warp.source_crs
    if warp.source_nodata is not None:
        arguments["srcNodata"] = repr(warp.source_nodata)
    if warp.nodata is not None:
        arguments["dstNodata"] = repr(warp.nodata)
    elif describe(source, uri).alpha is None:
        # A pixel that is missing in one band is missing in all (a store's mask has no bands).
        arguments |= {"dstAlpha": True, "warpOptions": ["UNIFIED_SRC_NODATA=PARTIAL"]}
    return _call(f"cannot warp {uri}", gdal.Warp, "", _placed(source, uri, warp.source_transform), **arguments)


def _placed(source: Any, uri: str, transform: Transform | None) -> Any:
    """The dataset with a geotransform that it does not declare itself."""
    if transform is None:
        return source
    a, _, c, _, e, f = transform
    bounds = [c, f, c + a * source.RasterXSize, f + e * source.RasterYSize]
    return _call(f"cannot place {uri}", gdal.Translate, "", source, format="VRT", outputBounds=bounds)


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
        transform=None if transform is None else _affine(transform),
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
    return _NUMPY_NAMES.get(name, name.lower())


def _gdal_type(dtype: str) -> int:
    return int(gdal.GetDataTypeByName({"uint8": "Byte", "uint16": "UInt16", "int16": "Int16", "float32": "Float32"}[dtype]))


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
def _internal_mask() -> Iterator[None]:
    gdal.SetThreadLocalConfigOption("GDAL_TIFF_INTERNAL_MASK", "YES")
    try:
        yield
    finally:
        gdal.SetThreadLocalConfigOption("GDAL_TIFF_INTERNAL_MASK", None)
