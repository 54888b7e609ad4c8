"""Sources: what each file of a series declares, brought to one form, with everything that stands in the way."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chronozarr_core.crs import describe_crs, epsg_code, normalize_crs
from chronozarr_core.dtypes import DTYPES
from chronozarr_core.errors import ChronozarrError
from chronozarr_core.grid import RasterGrid, Transform
from chronozarr_core.model import Band
from gdal_tools.bands import data_bands, describe_bands, name_problems
from gdal_tools.manifest import Bounds, Part
from gdal_tools.problems import Problem
from gdal_tools.rasters import RESAMPLING, RasterBackend, RasterHeader
from gdal_tools.worldfiles import disagreement, explain_missing

SEQUENTIAL_DRIVERS = ("PNG", "JPEG", "GIF", "BMP")
"""Formats that GDAL reads from the top: rows far down cost the rows above them."""


@dataclass(frozen=True)
class SourceOptions:
    """What a user says about the sources.

    Attributes
    ----------
    crs : target CRS, and the CRS of sources that declare none
    transform, shape : target grid: six floats for pixel corners, and (height, width)
    bounds : west, south, east, north of every frame that has no geotransform
    resampling : how sources that are not on the target grid are warped; None refuses them
    nodata : values that are missing besides what a source declares, NaN among them
    ignore_declared_nodata : sources' own nodata is data
    """

    crs: str | None = None
    transform: Transform | None = None
    shape: tuple[int, int] | None = None
    bounds: Bounds | None = None
    resampling: str | None = None
    nodata: tuple[float, ...] = ()
    ignore_declared_nodata: bool = False

    def __post_init__(self) -> None:
        if self.crs is not None:
            object.__setattr__(self, "crs", normalize_crs(self.crs))
        if (self.transform is None) != (self.shape is None):
            raise ChronozarrError("--transform and --shape together say what the target grid is: give both")
        if self.transform is not None and self.crs is None:
            raise ChronozarrError("--transform is in the units of a CRS: give --crs too")
        if self.resampling is not None and self.resampling not in RESAMPLING:
            raise ChronozarrError(f"resampling {self.resampling!r} is unknown: expected one of {', '.join(RESAMPLING)}")
        if self.bounds is not None:
            _check_bounds(self.bounds, self.crs)


def _check_bounds(bounds: Bounds, crs: str | None) -> None:
    west, south, east, north = bounds
    if crs is None:
        raise ChronozarrError("--bounds is in the units of a CRS: give --crs too")
    if not (west < east and south < north):
        raise ChronozarrError(
            f"bounds {west:.12g},{south:.12g},{east:.12g},{north:.12g} are empty: expected west,south,east,north with "
            "west < east and south < north"
        )


@dataclass(frozen=True)
class Source:
    """One inspected file.

    Attributes
    ----------
    bands : its data bands as a store would hold them
    grid : its own grid, north up; None where it is rotated or its CRS has no EPSG code, so that only a warp helps
    flipped : its rows run from south to north
    assumed_crs, assumed_transform : what the user said where the file declares nothing
    missing : for each data band, the values that are missing, in the file's dtype
    """

    part: Part
    header: RasterHeader
    bands: tuple[Band, ...]
    grid: RasterGrid | None
    flipped: bool
    assumed_crs: str | None
    assumed_transform: Transform | None
    missing: tuple[tuple[float, ...], ...]

    @property
    def where(self) -> str:
        return self.part.where

    @property
    def dtype(self) -> str:
        return data_bands(self.header.bands)[0].dtype

    @property
    def missing_values(self) -> set[float]:
        """Every value that is missing in some band."""
        return {value for values in self.missing for value in values}

    @property
    def has_plane(self) -> bool:
        """Whether an alpha band or a dataset mask says what is valid."""
        return self.header.alpha is not None or self.header.mask

    @property
    def is_sequential(self) -> bool:
        return self.header.driver in SEQUENTIAL_DRIVERS

    @property
    def stamp(self) -> list[object]:
        """Name, size and time of change of a local file: what a resumed run must find unchanged."""
        path = Path(self.part.uri)
        status = path.stat() if path.exists() else None
        return [self.part.uri, status.st_size if status else None, status.st_mtime_ns if status else None]


def inspect(part: Part, options: SourceOptions, backend: RasterBackend) -> tuple[Source | None, list[Problem]]:
    """Open one file, and say what it is and everything that is wrong with it."""
    if (
        not part.uri.startswith("/vsi")
        and os.sep in part.uri
        and not _subdataset(part.uri)
        and not Path(part.uri).exists()
    ):
        return None, [Problem(part.where, f"the file {part.uri} does not exist", "correct its uri or remove the row")]
    try:
        header = backend.header(part.uri)
    except ChronozarrError as error:
        return None, [Problem(part.where, str(error), "replace the file or remove the row")]
    problems = [*_pixel_problems(part, header), *_georeference_problems(part, header, options)]
    if problems:
        return None, problems
    return _source(part, header, options)


def _subdataset(uri: str) -> bool:
    return ":" in uri.split(os.sep, 1)[0]


def _pixel_problems(part: Part, header: RasterHeader) -> Iterator[Problem]:
    bands = data_bands(header.bands)
    dtypes = sorted({band.dtype for band in bands})
    if not bands:
        yield Problem(part.where, "it holds no data band", "give a raster with at least one band besides alpha")
        return
    if len(dtypes) > 1:
        yield Problem(part.where, f"its bands have data types {', '.join(dtypes)}", "convert them to one data type")
    elif dtypes[0] not in DTYPES:
        yield Problem(
            part.where,
            f"its data type is {dtypes[0]}, which a store cannot hold",
            f"convert it to one of {', '.join(DTYPES)} first, for example with gdal_translate -ot",
        )
    if header.driver == "PNG" and any(band.color == "palette" for band in bands):
        yield Problem(
            part.where,
            "it is a palette (indexed colour) PNG, so its values are palette indices, not colours",
            "expand it to RGB first, for example gdal_translate -expand rgba in.png out.png, or save the frames as RGB",
        )
    if part.bands and len(part.bands) != len(bands):
        yield Problem(
            part.where,
            f"it has {len(bands)} bands, but the manifest names {len(part.bands)} ({', '.join(part.bands)})",
            "name every band, or none",
        )


def _georeference_problems(part: Part, header: RasterHeader, options: SourceOptions) -> Iterator[Problem]:
    image = Path(part.uri)
    conflict = disagreement(image) if header.driver == "PNG" and image.exists() else None
    if conflict:
        yield Problem(part.where, conflict, "keep one of them")
    if header.transform is None and options.bounds is None:
        reason = explain_missing(image) if image.exists() else None
        yield Problem(
            part.where,
            "it has no georeferencing" + (f" ({reason})" if reason else ""),
            "put a world file (.pgw) or an .aux.xml beside it, or give --crs and --bounds west,south,east,north",
        )
    if options.bounds is not None and header.transform is not None:
        yield Problem(
            part.where,
            "it carries its own geotransform, and --bounds gives another",
            "drop --bounds, or remove its world file or .aux.xml",
        )
    if header.crs_wkt is None:
        if options.crs is None:
            yield Problem(part.where, "it declares no CRS", "say which one with --crs EPSG:<code>")
        return
    code = epsg_code(header.crs_wkt)
    if options.bounds is not None and code != options.crs:
        yield Problem(
            part.where,
            f"it declares {code or describe_crs(header.crs_wkt)}, and --bounds is in {options.crs}",
            "give --bounds in the frames' own CRS",
        )
    if code is None and options.crs is None:
        yield Problem(
            part.where,
            f"its CRS, {describe_crs(header.crs_wkt)!r}, has no EPSG code, which a store needs",
            "warp it to one that has: --crs EPSG:<code> --resampling nearest",
        )


def _source(part: Part, header: RasterHeader, options: SourceOptions) -> tuple[Source | None, list[Problem]]:
    headers = data_bands(header.bands)
    bands = describe_bands(headers, part.bands)
    problems = list(name_problems(part.where, bands))
    if problems:
        return None, problems
    declared = epsg_code(header.crs_wkt) if header.crs_wkt else options.crs
    assumed = _bounds_transform(header, options.bounds) if header.transform is None and options.bounds else None
    has_plane = header.mask or header.alpha is not None  # a plane beats a nodata value, as in GDAL
    grid, flipped = _own_grid(declared, header.transform or assumed, header)
    source = Source(
        part=part,
        header=header,
        bands=bands,
        grid=grid,
        flipped=flipped,
        assumed_crs=None if header.crs_wkt else options.crs,
        assumed_transform=assumed,
        missing=tuple(_missing(None if has_plane else band.nodata, band.dtype, options) for band in headers),
    )
    return source, problems


def _bounds_transform(header: RasterHeader, bounds: Bounds) -> Transform:
    """The north-up transform of an image that fills ``bounds`` edge to edge."""
    west, south, east, north = bounds
    return ((east - west) / header.width, 0.0, west, 0.0, (south - north) / header.height, north)


def _own_grid(crs: str | None, transform: Transform | None, header: RasterHeader) -> tuple[RasterGrid | None, bool]:
    """The source's grid, rows turned north up; None where it is rotated, mirrored or without EPSG code."""
    if crs is None or transform is None:
        return None, False
    a, b, c, d, e, f = transform
    if b or d or a <= 0 or not e:
        return None, False
    if e < 0:
        return RasterGrid(crs, transform, header.height, header.width), False
    turned = (a, b, c, d, -e, f + e * header.height)
    return RasterGrid(crs, turned, header.height, header.width), True


def _missing(declared: float | None, dtype: str, options: SourceOptions) -> tuple[float, ...]:
    """Values of a band that are missing, each as the dtype holds it; one that it cannot hold never occurs."""
    values: list[float] = list(options.nodata)
    if declared is not None and not options.ignore_declared_nodata:
        values.append(declared)
    held = {repr(value): value for value in (_as_dtype(value, dtype) for value in values) if value is not None}
    return tuple(sorted(held.values()))


def _as_dtype(value: float, dtype: str) -> float | None:
    kind = np.dtype(dtype)
    if kind.kind == "f":
        with np.errstate(over="ignore"):
            return float(np.float32(value))
    limits = np.iinfo(kind)
    if not np.isfinite(value) or value != int(value) or not limits.min <= value <= limits.max:
        return None
    return int(value)


def same_size_problems(sources: Sequence[Source]) -> Iterator[Problem]:
    """Under ``--bounds`` every frame has the size of the first: another would be another pixel size, a guess."""
    first = sources[0].header
    for source in sources[1:]:
        header = source.header
        if (header.width, header.height) != (first.width, first.height):
            yield Problem(
                source.where,
                f"it is {header.width} x {header.height} pixels, the first frame {first.width} x {first.height}, "
                "so --bounds would give it another pixel size",
                "give it its own world file, or render it at the same size",
            )
