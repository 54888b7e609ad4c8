"""Cloud Optimized GeoTIFFs of true values, whose overviews are the store's coarser levels, exactly."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from chronozarr_core.crs import wkt2
from chronozarr_core.dtypes import Nodata
from chronozarr_core.errors import ChronozarrError, SelectionError
from chronozarr_core.instants import Instants, format_instant, parse_instant
from chronozarr_core.model import Band
from chronozarr_core.plan import default_workers
from chronozarr_core.progress import Progress
from chronozarr_core.storage import StorageError
from chronozarr_core.store import ChronoStore
from gdal_tools.rasters import GeoTiffWriter, RasterBackend, raster_backend

_LEVELS = {"deflate": {"LEVEL": "1"}, "zstd": {"LEVEL": "5"}, "lzw": {}, "none": {}}
"""Higher levels cost up to twice the time; after the predictor they save nothing worth it, on scenes often nothing."""

COMPRESSIONS = tuple(_LEVELS)
MOST_WORKERS = 4
SMALLEST_TILE, TILE_UNIT, DEFAULT_TILE = 128, 16, 512
_GDAL_TYPES = {"uint8": "Byte", "uint16": "UInt16", "int16": "Int16", "float32": "Float32"}
_COLORS = {"red": "Red", "green": "Green", "blue": "Blue"}


def export_cogs(
    store: ChronoStore,
    out_dir: Path,
    *,
    level: int = 0,
    times: Sequence[int] | None = None,
    physical: bool = False,
    compress: str = "deflate",
    workers: int | None = None,
    progress: Progress | None = None,
) -> list[Path]:
    """Write one COG for each timestep, all bands, named ``L<level>_<date>.tif``; all of them or none.

    Parameters
    ----------
    level : pyramid level of the files' own pixels; the coarser levels become their overviews
    times : timesteps; None is all
    physical : float32 of stored * scale + offset, NaN where invalid and as nodata, instead of stored values
    compress : one of :data:`COMPRESSIONS`, all lossless
    workers : files written at once; by default one per processor, at most 4
    progress : called with files done and their total

    Raises
    ------
    ChronozarrError
        A file is already there, or the store has no such timestep or level. Nothing is left behind.
    """
    if compress not in COMPRESSIONS:
        raise ChronozarrError(f"compress {compress!r} is unknown: expected one of {', '.join(COMPRESSIONS)}")
    if not 0 <= level < len(store.levels):
        raise SelectionError(f"level {level} does not exist: the store has {len(store.levels)}")
    chosen = _timesteps(store, times)
    paths = [out_dir / name for name in file_names(store.times[chosen], level)]
    _refuse_existing(paths)
    export = _Export(store, level, physical, compress, raster_backend())
    with _all_or_nothing(out_dir, paths):
        _run(export, chosen, paths, workers or min(default_workers(), MOST_WORKERS), progress)
    return paths


def _timesteps(store: ChronoStore, times: Sequence[int] | None) -> list[int]:
    """The timesteps that are asked for, each once and counted from the first."""
    n_time = len(store.times)
    chosen = range(n_time) if times is None else times
    for t in chosen:
        if not -n_time <= t < n_time:
            raise SelectionError(f"timestep {t} does not exist: the store has {_span(store.times)}")
    return list(dict.fromkeys(t % n_time for t in chosen))


def _run(
    export: _Export, chosen: Sequence[int], paths: Sequence[Path], workers: int, progress: Progress | None
) -> None:
    with ThreadPoolExecutor(workers) as pool:
        tasks = [pool.submit(export.write, t, path) for t, path in zip(chosen, paths, strict=True)]
        try:
            for done, task in enumerate(as_completed(tasks), 1):
                task.result()
                if progress is not None:
                    progress(done, len(tasks))
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def file_names(times: Instants, level: int) -> list[str]:
    """``L0_2024-01-01.tif``, or with the time of day as soon as one timestep is not midnight."""
    whole_days = (times == times.astype("datetime64[D]")).all()
    stamps = [format_instant(time) for time in times]
    labels = [stamp[:10] if whole_days else stamp.replace(":", "") for stamp in stamps]
    return [f"L{level}_{label}.tif" for label in labels]


def _refuse_existing(paths: Sequence[Path]) -> None:
    existing = [path for path in paths if path.exists()]
    if existing:
        listed = ", ".join(str(path) for path in existing[:5])
        more = f" and {len(existing) - 5} more" if len(existing) > 5 else ""
        raise ChronozarrError(f"{listed}{more} exist already: choose another folder, or remove them first")


@contextmanager
def _all_or_nothing(out_dir: Path, paths: Sequence[Path]) -> Iterator[None]:
    made = not out_dir.exists()
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot create {out_dir}: {error.strerror}") from error
    try:
        yield
    except BaseException as error:
        for path in paths:
            path.unlink(missing_ok=True)
        if made:
            shutil.rmtree(out_dir, ignore_errors=True)
        if isinstance(error, OSError) and not isinstance(error, ChronozarrError):
            raise StorageError(f"cannot write to {out_dir}: {error.strerror or error}") from error
        raise


@dataclass(frozen=True)
class _Export:
    """One export: what every file of it has in common."""

    store: ChronoStore
    level: int
    physical: bool
    compress: str
    backend: RasterBackend

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float32) if self.physical else self.store.dtype

    @property
    def has_mask(self) -> bool:
        return self.store.has_mask and not self.physical

    @property
    def tile(self) -> int:
        """The store's chunk size where GDAL takes it for a tile."""
        size = self.store.chunk_size
        return size if size >= SMALLEST_TILE and size % TILE_UNIT == 0 else DEFAULT_TILE

    def write(self, t: int, path: Path) -> None:
        """Levels to temporary GeoTIFFs, strip by strip; a VRT over them; and its copy as a COG.

        The VRT's overviews are the level files, whose bands have its bands' numbers: GDAL asks an overview for the
        number of the VRT's band, whatever band the VRT names.
        """
        with tempfile.TemporaryDirectory(prefix=".export-", dir=path.parent) as folder:
            levels = range(self.level, len(self.store.levels))
            clear = [self._write_level(t, lod, Path(folder) / f"{lod}.tif") for lod in levels]
            view = Path(folder) / "frame.vrt"
            view.write_text(self._vrt(t, self._nodata(all(clear))), encoding="utf-8")
            self.backend.copy_cog(view, path, self._options())

    def _write_level(self, t: int, lod: int, path: Path) -> bool:
        """Write one level; return whether no valid pixel holds the store's nodata."""
        grid, size = self.store.grids[lod], self.store.chunk_size
        clear = True
        create = self.backend.create_geotiff(
            path,
            grid.width,
            grid.height,
            len(self.store.bands),
            self.dtype.name,
            mask=self.has_mask,
            block_size=self.tile,
        )
        with create as target:
            for start in range(0, grid.height, size):
                clear &= self._write_strip(target, t, lod, slice(start, min(start + size, grid.height)))
        return clear

    def _write_strip(self, target: GeoTiffWriter, t: int, lod: int, rows: slice) -> bool:
        if self.physical:
            target.write(rows.start, self.store.read_physical(t, lod, rows), None)
            return True
        data = self.store.read_window(t, rows, slice(None), lod)
        mask = self.store.read_mask(t, lod, rows)
        target.write(rows.start, data, mask)
        nodata = self.store.nodata
        return mask is None or nodata is None or not ((data == nodata) & (mask != 0)).any()

    def _nodata(self, clear: bool) -> Nodata:
        """A mask store's nodata would hide valid pixels that hold it, since readers often look at nodata first."""
        if self.physical:
            return float("nan")
        return self.store.nodata if clear else None

    def _options(self) -> dict[str, str]:
        many = len(self.store.levels) - self.level > 1
        options = {
            "COMPRESS": self.compress.upper(),
            "BLOCKSIZE": str(self.tile),
            "OVERVIEWS": "FORCE_USE_EXISTING" if many else "NONE",
            "NUM_THREADS": "ALL_CPUS",
            "BIGTIFF": "IF_SAFER",
        }
        return options if self.compress == "none" else options | {"PREDICTOR": "YES"} | _LEVELS[self.compress]

    def _vrt(self, t: int, nodata: Nodata) -> str:
        grid = self.store.grids[self.level]
        a, b, c, d, e, f = grid.transform
        bands = "".join(self._vrt_band(number, band, nodata) for number, band in enumerate(self.store.bands, 1))
        return (
            f'<VRTDataset rasterXSize="{grid.width}" rasterYSize="{grid.height}">'
            f"<SRS>{escape(wkt2(grid.crs))}</SRS>"
            f"<GeoTransform>{c!r}, {a!r}, {b!r}, {f!r}, {d!r}, {e!r}</GeoTransform>"
            f'<Metadata><MDI key="TIFFTAG_DATETIME">{tiff_datetime(self.store.times[t])}</MDI></Metadata>'
            f"{bands}{self._vrt_mask()}</VRTDataset>"
        )

    def _vrt_band(self, number: int, band: Band, nodata: Nodata) -> str:
        scaled = not self.physical and (band.scale, band.offset) != (1, 0)
        scaling = f"<Offset>{float(band.offset)!r}</Offset><Scale>{float(band.scale)!r}</Scale>" if scaled else ""
        overviews = "".join(
            f"<Overview>{_source(f'{lod}.tif', number)}</Overview>"
            for lod in range(self.level + 1, len(self.store.levels))
        )
        return (
            f'<VRTRasterBand dataType="{_GDAL_TYPES[self.dtype.name]}" band="{number}">'
            f"<Description>{escape(band.name)}</Description>"
            + (f"<UnitType>{escape(band.units)}</UnitType>" if band.units else "")
            + scaling
            + (f"<NoDataValue>{nodata!r}</NoDataValue>" if nodata is not None else "")
            + f"<ColorInterp>{self._color(band, number)}</ColorInterp>"
            + f"<SimpleSource>{_source(f'{self.level}.tif', number)}</SimpleSource>"
            + f"{overviews}</VRTRasterBand>"
        )

    def _color(self, band: Band, number: int) -> str:
        names = {other.common_name for other in self.store.bands}
        if set(_COLORS) <= names:
            return _COLORS.get(band.common_name or "", "Undefined")
        return "Gray" if number == 1 else "Undefined"

    def _vrt_mask(self) -> str:
        if not self.has_mask:
            return ""
        source = _source(f"{self.level}.tif", "mask,1")
        return (
            f'<MaskBand><VRTRasterBand dataType="Byte"><SimpleSource>{source}</SimpleSource></VRTRasterBand></MaskBand>'
        )


def _source(name: str, band: int | str) -> str:
    return f'<SourceFilename relativeToVRT="1">{name}</SourceFilename><SourceBand>{band}</SourceBand>'


def tiff_datetime(instant: np.datetime64) -> str:
    """``YYYY:MM:DD HH:MM:SS``, as the TIFF specification has it."""
    return format_instant(instant)[:19].replace("-", ":").replace("T", " ")


_POSITIONS = re.compile(r"^(-\d+|\d{1,3}|\d{5,}|-?\d*:-?\d*(:-?\d*)?)$")
_DATE = re.compile(r"^\d{4}(-\d{2}(-\d{2}(T.*)?)?)?$")


def parse_times(specs: Sequence[str], times: Instants) -> list[int]:
    """The timesteps that texts choose, in time order, each once.

    A text is a list separated by commas of indices (``0``, ``-1``), slices (``0:12:3``), dates (``2024``, ``2024-03``,
    ``2024-03-15``: all of that year, month or day) and ranges of dates (``2020-01..2022-06``, both included). Four
    digits are a year, fewer an index.

    Raises
    ------
    SelectionError
        A text is none of these, or chooses nothing; the message says what the store has.
    """
    chosen: set[int] = set()
    for spec in (part.strip() for text in specs for part in text.split(",")):
        try:
            chosen |= _times_of(spec, times)
        except ValueError as error:
            raise SelectionError(f"--times {spec!r} {error}: the store has {_span(times)}") from None
    return sorted(chosen)


def _times_of(spec: str, times: Instants) -> set[int]:
    found = _positions(spec, times) if _POSITIONS.match(spec) else _dated(spec, times)
    if not found:
        raise ValueError("chooses no timestep")
    return found


def _positions(spec: str, times: Instants) -> set[int]:
    """Timesteps of an index, or of a slice as Python has it."""
    numbers = range(len(times))
    if ":" not in spec:
        index = int(spec)
        return {index % len(numbers)} if -len(numbers) <= index < len(numbers) else set()
    start, stop, step = ([int(part) if part else None for part in spec.split(":")] + [None])[:3]
    if step == 0:
        raise ValueError("has step 0")
    return set(numbers[start:stop:step])


def _dated(spec: str, times: Instants) -> set[int]:
    first, _, last = spec.partition("..")
    begin, end = _period(first)[0], _period(last or first)[1]
    return {int(t) for t in np.flatnonzero((times >= begin) & (times < end))}


def _period(date: str) -> tuple[np.datetime64, np.datetime64]:
    """First moment of a date and of the one after it; a time of day is a millisecond long."""
    if not _DATE.match(date):
        raise ValueError("is no index, slice, date or range of dates")
    try:
        begin = parse_instant(date) if len(date) > len("YYYY-MM-DD") else np.datetime64(date)
    except ValueError:
        raise ValueError(f"names {date!r}, which is not a date") from None
    return begin, (begin.astype(np.int64) + 1).astype(begin.dtype)  # in the unit of the text: a year, a month, a day


def _span(times: Instants) -> str:
    return f"{len(times)} timesteps, {format_instant(times[0])} to {format_instant(times[-1])}"
