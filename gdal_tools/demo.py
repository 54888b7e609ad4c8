"""The main job on a drawn river: dated PNG frames and COGs to stores, validated, exported, compared, looked at."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from chronozarr_core.crs import wkt2
from chronozarr_core.encode import EncodeResult
from chronozarr_core.errors import ChronozarrError
from chronozarr_core.grid import RasterGrid
from chronozarr_core.partial import check_output
from chronozarr_core.plan import EncodeOptions, default_workers
from chronozarr_core.progress import Progress
from chronozarr_core.store import open_store
from chronozarr_core.validate import Finding, validate
from gdal_tools.cog import export_cogs
from gdal_tools.contact_sheet import describe, draw_sheet, make_panel
from gdal_tools.convert import convert
from gdal_tools.pictures import Image
from gdal_tools.rasters import raster_backend
from gdal_tools.river import BANDS, MONTHS, SCALE, Scene, draw_river
from gdal_tools.sources import SourceOptions

CRS = "EPSG:32718"
ORIGIN = (532_000.0, 9_083_000.0)
SHAPE = (603, 701)
RESOLUTION = 10.0
CHUNK_SIZE, LEVELS = 256, 5
FIRST_YEAR = 2023
BLACK, WHITE, GAMMA = 0.012, 0.240, 1.3
"""Reflectance that is black and white in the PNG frames, and how much they lift the dark."""


@dataclass(frozen=True)
class SeriesReport:
    """One series and the store made of it; sizes in bytes, ``raw`` uncompressed."""

    name: str
    timesteps: int
    raw: int
    source: int
    store: EncodeResult
    seconds: float

    def __str__(self) -> str:
        temporal = self.store.temporal
        chosen = f" (star-delta/plain = {temporal.selection.ratio:.2f})" if temporal.selection else ""
        return (
            f"{self.name}: {self.timesteps} dates, {_megabytes(self.raw)} of pixels, {_megabytes(self.source)} of files"
            f" -> {_megabytes(self.store.nbytes)} in {self.store.objects} objects, {self.store.levels} levels, "
            f"{temporal.encoding}{chosen}, {self.seconds:.1f} s; valid, every value equal"
        )


@dataclass(frozen=True)
class DemoResult:
    """What the demo made; its text is the summary for a person."""

    out_dir: Path
    series: tuple[SeriesReport, ...]
    exported: tuple[Path, ...]
    contact_sheet: Path
    seconds: float

    def __str__(self) -> str:
        exported = f"exported: {len(self.exported)} COGs, every value equal to the input"
        looked = f"look at {self.contact_sheet} ({self.seconds:.1f} s in all)"
        return "\n".join([*map(str, self.series), exported, looked])


def run_demo(
    out_dir: Path,
    progress: Progress | None = None,
    *,
    shape: tuple[int, int] = SHAPE,
    months: int = MONTHS,
    chunk_size: int = CHUNK_SIZE,
) -> DemoResult:
    """Draw, convert, validate, export, compare, and draw the contact sheet.

    Parameters
    ----------
    out_dir : folder, absent or empty; gets ``png``, ``cogs``, ``stores``, ``exported`` and ``contact_sheet.png``
    progress : told the steps done and their total
    shape : rows and columns of a frame
    months : frames, 1 to 24
    chunk_size : edge of a cell in pixels, even

    Raises
    ------
    ChronozarrError
        ``out_dir`` holds something, or a store or an export is not what it must be.
    """
    start = time.perf_counter()
    check_output(out_dir)
    stages = _Stages(progress, 5 * months)
    manifests = write_inputs(out_dir, shape, months, stages.next(months))
    reports = [
        make_store(manifest, out_dir / "stores" / name, chunk_size, stages.next(months))
        for name, manifest in manifests.items()
    ]
    check_frames(out_dir / "png", out_dir / "stores" / "png")
    exported = export(out_dir / "stores" / "cogs", out_dir / "exported", stages.next(months))
    compare(sorted((out_dir / "cogs").glob("*.tif")), exported, stages.next(months))
    sheet = draw_contact_sheet(out_dir)
    return DemoResult(out_dir, tuple(reports), tuple(exported), sheet, time.perf_counter() - start)


class _Stages:
    """One progress over several runs that each count their own steps."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._before = progress, total, 0

    def next(self, steps: int) -> Progress:
        before, self._before = self._before, self._before + steps

        def report(done: int, total: int) -> None:
            if self._progress is not None:
                self._progress(before + done * steps // max(1, total), self._total)

        return report


def demo_grid(shape: tuple[int, int]) -> RasterGrid:
    """Where the drawn river lies: on the Ucayali, 10 m a pixel."""
    return RasterGrid(CRS, (RESOLUTION, 0.0, ORIGIN[0], 0.0, -RESOLUTION, ORIGIN[1]), *shape)


def month_name(month: int) -> str:
    """``YYYY-MM`` of month 0 and later."""
    return f"{FIRST_YEAR + month // 12}-{month % 12 + 1:02d}"


def write_inputs(out_dir: Path, shape: tuple[int, int], months: int, progress: Progress) -> dict[str, Path]:
    """Draw every month once, as a PNG frame and as a COG; return the manifests by series."""
    folders = {name: out_dir / name for name in ("png", "cogs")}
    for folder in folders.values():
        folder.mkdir(parents=True)
    (out_dir / "stores").mkdir()
    grid = demo_grid(shape)
    draw_river(0, shape)  # the course of the river, which all months share, is computed once and not by each thread
    _in_threads(partial(_write_month, folders, grid), range(months), months, progress)
    return {
        "png": _write_manifest(folders["png"], "png", months),
        "cogs": _write_manifest(folders["cogs"], "tif", months),
    }


def _in_threads(work: Any, items: Iterable[Any], count: int, progress: Progress) -> None:
    with ThreadPoolExecutor(default_workers()) as pool:
        for done, _ in enumerate(pool.map(work, items), 1):
            progress(done, count)


def _write_month(folders: dict[str, Path], grid: RasterGrid, month: int) -> None:
    scene = draw_river(month, (grid.height, grid.width))
    write_png_frame(scene, grid, folders["png"] / f"river_{month_name(month)}.png")
    write_cog(np.stack([scene[band] for band in BANDS]), grid, folders["cogs"] / f"river_{month_name(month)}.tif")


def _write_manifest(folder: Path, suffix: str, months: int) -> Path:
    rows = [f"river_{name}.{suffix},{name}-01\n" for name in map(month_name, range(months))]
    path = folder / "manifest.csv"
    path.write_text("uri,datetime\n" + "".join(rows), encoding="utf-8")
    return path


def write_png_frame(scene: Scene, grid: RasterGrid, path: Path) -> None:
    """A true-colour RGBA frame, transparent where the scene has gaps, and its world file."""
    Image.fromarray(true_color(scene)).save(path, compress_level=3)
    a, _, west, _, e, north = grid.transform
    lines = (a, 0.0, 0.0, e, west + a / 2, north + e / 2)
    path.with_suffix(".pgw").write_text("".join(f"{value}\n" for value in lines), encoding="ascii")


def true_color(scene: Scene) -> NDArray[np.uint8]:
    """Red, green, blue and alpha as a screen shows them, shape (y, x, 4)."""
    reflectance = np.stack([scene[color] for color in ("red", "green", "blue")], axis=-1) * SCALE
    shades = 255 * np.clip((reflectance - BLACK) / (WHITE - BLACK), 0, 1) ** (1 / GAMMA)
    alpha = np.where(scene["valid"], 255, 0)[..., None]
    return np.concatenate([np.rint(shades), alpha], axis=-1).astype(np.uint8)


def write_cog(counts: NDArray[np.uint16], grid: RasterGrid, path: Path) -> None:
    """A COG of reflectance counts, shape (band, y, x), with names, scale, unit and nodata 0."""
    backend = raster_backend()
    with TemporaryDirectory(dir=path.parent) as folder:
        plain, described = Path(folder) / "plain.tif", Path(folder) / "described.vrt"
        bands, height, width = counts.shape
        with backend.create_geotiff(plain, width, height, bands, "uint16", mask=False, block_size=256) as writer:
            writer.write(0, counts, None)
        described.write_text(_vrt(plain.name, grid), encoding="utf-8")
        backend.copy_cog(described, path, {"COMPRESS": "DEFLATE", "LEVEL": "1", "PREDICTOR": "2", "BLOCKSIZE": "256"})


def _vrt(source: str, grid: RasterGrid) -> str:
    """The plain raster with place, names, scale, unit and nodata."""
    a, b, c, d, e, f = grid.transform
    bands = "".join(_vrt_band(number, name, source) for number, name in enumerate(BANDS, 1))
    return (
        f'<VRTDataset rasterXSize="{grid.width}" rasterYSize="{grid.height}">'
        f"<SRS>{escape(wkt2(grid.crs))}</SRS><GeoTransform>{c}, {a}, {b}, {f}, {d}, {e}</GeoTransform>"
        f"{bands}</VRTDataset>\n"
    )


def _vrt_band(number: int, name: str, source: str) -> str:
    return (
        f'<VRTRasterBand dataType="UInt16" band="{number}"><Description>{name}</Description>'
        f"<UnitType>reflectance</UnitType><Scale>{SCALE}</Scale><Offset>0</Offset><NoDataValue>0</NoDataValue>"
        f'<SimpleSource><SourceFilename relativeToVRT="1">{source}</SourceFilename>'
        f"<SourceBand>{number}</SourceBand></SimpleSource></VRTRasterBand>"
    )


def make_store(manifest: Path, store: Path, chunk_size: int, progress: Progress) -> SeriesReport:
    """Convert a manifest and validate the store; its name is the series'.

    Raises
    ------
    ChronozarrError
        The validator finds anything.
    """
    start = time.perf_counter()
    options = EncodeOptions(chunk_size=chunk_size, n_lods=LEVELS)
    result = convert(manifest, store, SourceOptions(crs=CRS), options, progress=progress)
    seconds = time.perf_counter() - start
    findings = validate(store)
    if findings:
        raise ChronozarrError(f"{store} does not conform: {_listed(findings)}")
    opened = open_store(store)
    raw = math.prod(opened.levels[0].shape) * opened.dtype.itemsize
    source = sum(path.stat().st_size for path in manifest.parent.iterdir())
    return SeriesReport(store.name, len(opened.times), raw, source, result, seconds)


def _listed(findings: Sequence[Finding]) -> str:
    return "; ".join(f"{finding.key}: {finding.message} ({finding.section})" for finding in findings)


def check_frames(frames: Path, store: Path) -> None:
    """Compare every PNG frame with what the store holds: colours with the data, alpha with the mask.

    Raises
    ------
    ChronozarrError
        A value differs.
    """
    opened = open_store(store)
    for t, path in enumerate(sorted(frames.glob("*.png"))):
        with Image.open(path) as picture:
            expected = np.moveaxis(np.asarray(picture), -1, 0)
        mask = opened.read_mask(t)
        if mask is None or not np.array_equal(mask, expected[3] // 255):
            raise ChronozarrError(f"{store}: the mask of timestep {t} is not the alpha of {path.name}")
        _check_equal(opened.read(t), expected[:3], f"{store}, timestep {t}", path)


def export(store: Path, folder: Path, progress: Progress) -> list[Path]:
    """Every timestep of a store as a COG."""
    return export_cogs(open_store(store), folder, progress=progress)


def compare(inputs: list[Path], exported: list[Path], progress: Progress) -> None:
    """Compare exported COGs with the files the store was made of, value by value.

    Raises
    ------
    ChronozarrError
        A file is missing or a value differs.
    """
    if len(inputs) != len(exported):
        raise ChronozarrError(f"{len(exported)} files were exported: expected {len(inputs)}, one for each input")
    for done, (given, made) in enumerate(zip(inputs, exported, strict=True), 1):
        _check_equal(read_raster(made), read_raster(given), str(made), given)
        progress(done, len(inputs))


def read_raster(path: Path) -> NDArray[Any]:
    """All pixels of a raster, shape (band, y, x)."""
    raster = raster_backend().open(str(path))
    try:
        return raster.read(slice(0, raster.header.height), slice(0, raster.header.width))
    finally:
        raster.close()


def _check_equal(found: NDArray[Any], expected: NDArray[Any], where: str, given: Path) -> None:
    if found.dtype != expected.dtype or found.shape != expected.shape:
        raise ChronozarrError(
            f"{where} is {found.dtype} {found.shape}: expected {expected.dtype} {expected.shape} of {given}"
        )
    differing = int((found != expected).sum())
    if differing:
        raise ChronozarrError(f"{where}: {differing} values differ from {given}")


def draw_contact_sheet(out_dir: Path) -> Path:
    """Six dates of both stores: every level of the COGs' store, and level 0 of the frames'."""
    cogs, png = (open_store(out_dir / "stores" / name) for name in ("cogs", "png"))
    panels = [
        make_panel(cogs, heading=f"From COGs:  {describe(cogs)}"),
        make_panel(png, heading=f"From PNG frames:  {describe(png)}", levels=(0,)),
    ]
    path = out_dir / "contact_sheet.png"
    draw_sheet(f"A river that moves: {len(cogs.times)} months as chronozarr stores", panels).save(path)
    return path


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
