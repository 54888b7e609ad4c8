"""Rasters for tests, written with whichever GDAL binding is there - never with the code under test."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

TRANSFORM = (10.0, 0.0, 500000.0, 0.0, -10.0, 5000000.0)
CRS = "EPSG:32631"
WORLD_FILE = "10.0\n0.0\n0.0\n-10.0\n500005.0\n4999995.0\n"


def frame(seed: int = 0, bands: int = 2, height: int = 30, width: int = 40, dtype: str = "uint16") -> Any:
    """Random values, shape (bands, height, width)."""
    values = np.random.default_rng(seed).integers(1, 200, (bands, height, width))
    return values.astype(dtype)


def write_tif(
    path: Path,
    data: Any,
    *,
    transform: Sequence[float] | None = TRANSFORM,
    crs: str | None = CRS,
    nodata: float | None = None,
    scales: Sequence[float] | None = None,
    offsets: Sequence[float] | None = None,
    units: Sequence[str] | None = None,
    descriptions: Sequence[str] | None = None,
    mask: Any = None,
    alpha: bool = False,
    **options: Any,
) -> Path:
    """A GeoTIFF of ``data``, shape (band, y, x) or (y, x), with the binding at hand."""
    data = np.asarray(data)
    data = data[None] if data.ndim == 2 else data
    path.parent.mkdir(parents=True, exist_ok=True)
    arguments = (path, data, transform, crs, nodata, scales, offsets, units, descriptions, mask, alpha, options)
    try:
        import rasterio
    except ImportError:
        _write_osgeo(*arguments)
    else:
        _write_rasterio(rasterio, *arguments)
    return path


def _write_rasterio(
    rasterio: Any, path: Path, data: Any, transform: Any, crs: Any, nodata: Any, scales: Any, offsets: Any, units: Any,
    descriptions: Any, mask: Any, alpha: bool, options: dict[str, Any],
) -> None:  # fmt: skip
    import warnings

    if alpha:
        options = {**options, "alpha": "yes"}
    with warnings.catch_warnings(), rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        warnings.simplefilter("ignore")
        with rasterio.open(
            path, "w", driver="GTiff", count=data.shape[0], height=data.shape[1], width=data.shape[2],
            dtype=data.dtype, crs=crs, nodata=nodata,
            transform=rasterio.Affine(*transform) if transform else rasterio.Affine.identity(), **options,
        ) as target:  # fmt: skip
            target.write(data)
            for name, values in (
                ("scales", scales),
                ("offsets", offsets),
                ("units", units),
                ("descriptions", descriptions),
            ):
                if values is not None:
                    setattr(target, name, values)
            if mask is not None:
                target.write_mask(np.asarray(mask, bool))


def _write_osgeo(
    path: Path, data: Any, transform: Any, crs: Any, nodata: Any, scales: Any, offsets: Any, units: Any,
    descriptions: Any, mask: Any, alpha: bool, options: dict[str, Any],
) -> None:  # fmt: skip
    from osgeo import gdal, osr

    codes = {"uint8": 1, "uint16": 2, "int16": 3, "uint32": 4, "int32": 5, "float32": 6, "float64": 7, "complex64": 10}
    creation = [f"{name.upper()}={value}" for name, value in options.items()]
    if alpha:
        creation.append("ALPHA=YES")
    gdal.SetConfigOption("GDAL_TIFF_INTERNAL_MASK", "YES")
    target = gdal.GetDriverByName("GTiff").Create(
        str(path), data.shape[2], data.shape[1], data.shape[0], codes[data.dtype.name], creation
    )
    if transform:
        a, b, c, d, e, f = transform
        target.SetGeoTransform((c, a, b, f, d, e))
    if crs:
        reference = osr.SpatialReference()
        reference.SetFromUserInput(crs)
        target.SetProjection(reference.ExportToWkt())
    for index in range(data.shape[0]):
        band = target.GetRasterBand(index + 1)
        if nodata is not None:
            band.SetNoDataValue(nodata)
        for values, setter in (
            (scales, band.SetScale), (offsets, band.SetOffset), (units, band.SetUnitType),
            (descriptions, band.SetDescription),
        ):  # fmt: skip
            if values is not None:
                setter(values[index])
        band.WriteRaster(0, 0, data.shape[2], data.shape[1], np.ascontiguousarray(data[index]).tobytes())
    if mask is not None:
        target.CreateMaskBand(2)
        flags = (np.asarray(mask, bool) * 255).astype(np.uint8)
        target.GetRasterBand(1).GetMaskBand().WriteRaster(0, 0, data.shape[2], data.shape[1], flags.tobytes())
    del target
    gdal.SetConfigOption("GDAL_TIFF_INTERNAL_MASK", None)


def write_png(path: Path, data: Any, *, palette: Sequence[int] | None = None, transparent: bytes | None = None) -> Path:
    """A PNG of uint8 or uint16 ``data``, shape (y, x) or (y, x, channels), written from the PNG standard."""
    data = np.asarray(data)
    data = data[..., None] if data.ndim == 2 else data
    height, width, channels = data.shape
    kind = 3 if palette is not None else {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    rows = data.astype(data.dtype.newbyteorder(">")).reshape(height, -1)
    raw = b"".join(b"\0" + row.tobytes() for row in rows)
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, data.dtype.itemsize * 8, kind, 0, 0, 0))]
    if palette is not None:
        chunks.append((b"PLTE", bytes(palette)))
    if transparent is not None:
        chunks.append((b"tRNS", transparent))
    chunks += [(b"IDAT", zlib.compress(raw)), (b"IEND", b"")]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for name, body in chunks:
            file.write(struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)))
    return path


def write_manifest(path: Path, rows: Sequence[tuple[str, ...]]) -> Path:
    """A CSV manifest; rows of (uri, datetime) or (uri, datetime, bands)."""
    header = "uri,datetime,bands" if any(len(row) > 2 for row in rows) else "uri,datetime"
    path.write_text("\n".join([header, *(",".join(row) for row in rows)]) + "\n", encoding="utf-8")
    return path


def write_series(folder: Path, n: int = 3, **options: Any) -> tuple[Path, list[Any]]:
    """``n`` dated GeoTIFFs and their manifest; returns the manifest and the arrays in time order."""
    frames = [frame(seed) for seed in range(n)]
    rows = []
    for index, values in enumerate(frames):
        write_tif(folder / f"f{index}.tif", values, **options)
        rows.append((f"f{index}.tif", f"2024-{index + 1:02}-01"))
    return write_manifest(folder / "manifest.csv", rows), frames
