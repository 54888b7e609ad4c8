"""``chronozarr convert`` and ``chronozarr encode``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from chronozarr_core.encode import EncodeResult, encode_series
from chronozarr_core.errors import ChronozarrError
from chronozarr_core.frames import FrameSeries
from chronozarr_core.instants import format_instant
from chronozarr_core.partial import check_output
from chronozarr_core.plan import EncodeOptions
from gdal_tools.cli.options import (
    Numbers,
    encode_options,
    make_encode_options,
    megabytes,
    progress_bar,
    quiet_option,
)
from gdal_tools.convert import Conversion, estimate, prepare
from gdal_tools.datasets import open_series
from gdal_tools.rasters import RESAMPLING
from gdal_tools.sources import SourceOptions

RESUME_HINT = "interrupted: continue with the same command and --resume, or remove {partial}"


@click.command("convert")
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--crs",
    metavar="EPSG:CODE",
    help="Target CRS (default: the first source's), and the CRS of sources "
    "that declare none, such as a PNG with a world file.",
)
@click.option(
    "--transform",
    type=Numbers("a", "b", "c", "d", "e", "f"),
    metavar="A,B,C,D,E,F",
    help="Target grid: affine transform of pixel corners, north up. Needs --crs and --shape.",
)
@click.option(
    "--shape", type=Numbers("height", "width", kind=int), metavar="HEIGHT,WIDTH", help="Target grid in pixels."
)
@click.option(
    "--bounds",
    type=Numbers("west", "south", "east", "north"),
    metavar="W,S,E,N",
    help="Outer edges of every frame in the units of --crs, for images without a geotransform. "
    "All frames must have one size.",
)
@click.option(
    "--resampling",
    type=click.Choice(RESAMPLING),
    help="Warp sources that are not on the target grid with this method; without it they are refused.",
)
@click.option(
    "--nodata",
    multiple=True,
    metavar="N|nan|none",
    help="A value that is missing, besides what the sources declare; repeatable. 'none' ignores what they "
    "declare, 'nan' takes NaN for missing.",
)
@encode_options
@click.option("--resume", is_flag=True, help="Continue an interrupted run at its first unfinished group.")
@click.option("--dry-run", is_flag=True, help="Check every source, print what would be written, and stop.")
@quiet_option
def convert_command(
    source: Path, out: Path, nodata: tuple[str, ...], resume: bool, dry_run: bool, quiet: bool, **values: Any
) -> None:
    """Convert the rasters that SOURCE lists into a chronozarr store at OUT.

    SOURCE is a manifest: CSV with the columns uri,datetime[,bands], or JSON with "items" of the same members and
    optional "bounds". Relative uris are relative to the manifest; rows come in any order. Several rows may share a
    datetime when each names one band: they are the bands of that date.

    \b
    Values are stored exactly as the files hold them; nothing is resampled or cast unless asked.
      scale, offset, unit, band names   from the files, the same in every file or refused
      nodata    every band of every file declares the same finite value, and no alpha or mask exists
      mask      an alpha band or internal mask; NaN, infinite or differing nodata; pixels that a
                file does not cover where no nodata is declared. Invalid in one band is invalid in all
      neither   no nodata declared: every pixel is valid, a stored 0 is data
      NaN       is never stored: 0 under a mask, nodata beside a declared one, else refused
    \b
    PNG frames hold display values.
      place     a world file (.pgw, .pngw, .wld) and --crs; or .aux.xml; or --crs and --bounds
      bands     red, green, blue; grey is band 1; alpha becomes the mask; palettes are refused

    Files on one lattice that cover different extents are padded to their union. Every file is checked before anything
    is written, and all problems are listed together.
    """  # noqa: D301  # click keeps the line breaks of a paragraph that begins with a backspace
    names = ("crs", "transform", "shape", "bounds", "resampling")
    missing, ignore = _parse_nodata(nodata)
    chosen = {name: values.pop(name) for name in names}
    source_options = SourceOptions(**chosen, nodata=missing, ignore_declared_nodata=ignore)
    options = make_encode_options(**values)
    if not dry_run:
        check_output(out)
    with progress_bar("checking", quiet) as progress:
        conversion = prepare(source, source_options, progress)
    for note in () if quiet else conversion.notes:
        click.echo(f"Note: {note}", err=True)
    if dry_run:
        _print_plan(conversion, options)
        return
    _run(conversion.series, out, options, quiet, resumable=True, resume=resume)


@click.command("encode")
@click.argument("source", metavar="INPUT", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--variable", help="Variable of a netCDF file or Zarr group (default: the only one that fits).")
@click.option("--crs", metavar="EPSG:CODE", help="CRS of an input that declares none.")
@encode_options
@quiet_option
def encode_command(source: Path, out: Path, variable: str | None, crs: str | None, quiet: bool, **values: Any) -> None:
    """Encode INPUT, an array over time, into a chronozarr store at OUT.

    INPUT is a chronozarr store, to write it again with another encoding, codec or chunk size, or a netCDF file or Zarr
    group with a variable of dimensions (time, band, y, x). Packed values stay packed: scale_factor and add_offset
    become the bands' scale and offset. Rasters with a date each are for `chronozarr convert`.
    """
    options = make_encode_options(**values)
    check_output(out)
    _run(open_series(source, variable, crs), out, options, quiet)


def _run(
    series: FrameSeries,
    out: Path,
    options: EncodeOptions,
    quiet: bool,
    *,
    resumable: bool = False,
    resume: bool = False,
) -> None:
    start = time.perf_counter()
    try:
        with progress_bar("encoding", quiet) as progress:
            result = encode_series(series, out, options, resumable=resumable, resume=resume, progress=progress)
    except KeyboardInterrupt:
        hint = RESUME_HINT.format(partial=out.with_name(out.name + ".partial")) if resumable else "interrupted"
        raise ChronozarrError(hint) from None
    if not quiet:
        click.echo(summary(result, len(series.times), options, time.perf_counter() - start))


def summary(result: EncodeResult, n_time: int, options: EncodeOptions, seconds: float) -> str:
    """One line on what was written."""
    selection = result.temporal.selection
    chosen = (
        f" (auto: star-delta/plain = {selection.ratio:.2f} on {selection.sampled_cells} cells)" if selection else ""
    )
    codec = options.compression
    return (
        f"wrote {result.path}: {n_time} timesteps, {result.levels} levels, {result.objects} files, "
        f"{megabytes(result.nbytes)}, encoding {result.temporal.encoding}{chosen}, {codec.name} {codec.level}, "
        f"in {seconds:.1f} s"
    )


def _parse_nodata(texts: tuple[str, ...]) -> tuple[tuple[float, ...], bool]:
    numbers = []
    for text in texts:
        if text.lower() != "none":
            try:
                numbers.append(float(text))
            except ValueError:
                raise click.BadParameter(f"{text!r} is not a number, 'nan' or 'none'", param_hint="--nodata") from None
    return tuple(numbers), any(text.lower() == "none" for text in texts)


def _print_plan(conversion: Conversion, options: EncodeOptions) -> None:
    rows = [*_what(conversion), *_cost(conversion, options)]
    for name, text in rows:
        click.echo(f"{name + ':':<12} {text}")
    click.echo("nothing was written (--dry-run)")


def _what(conversion: Conversion) -> Iterator[tuple[str, str]]:
    """What a dry run says of the data."""
    series, grid, times = conversion.series, conversion.series.grid, conversion.series.times
    a, _, c, _, e, f = grid.transform
    yield (
        "grid",
        f"{grid.crs}, {grid.height} x {grid.width} pixels of {a:.9g} x {-e:.9g}, corner ({c:.12g}, {f:.12g})",
    )
    yield "times", f"{len(times)}, {format_instant(times[0])} to {format_instant(times[-1])}"
    yield "data", f"{len(series.bands)} bands of {series.dtype.name}"
    for band in series.bands:
        yield f"  {band.name}", f"stored * {band.scale:g} + {band.offset:g} {band.units or ''}".rstrip()
    yield "validity", series.validity.reason
    yield "placement", _placement(conversion)


def _cost(conversion: Conversion, options: EncodeOptions) -> Iterator[tuple[str, str]]:
    """What a dry run says of the store."""
    cost, size = estimate(conversion.series, options), options.chunk_size
    levels = conversion.series.grid.levels(size, options.n_lods)
    sample = f"{cost.sample.plain_bytes / cost.sample.raw_bytes:.2f} on {cost.sample.cells} cells"
    yield "levels", f"{len(levels)} of {size} x {size} cells"
    yield "raw size", megabytes(cost.raw_bytes)
    yield "store size", f"about {megabytes(cost.store_bytes)} ({options.compression.name} ratio {sample}, stored plain)"
    yield "time", f"about {cost.seconds:.1f} s with {options.workers} threads"


def _placement(conversion: Conversion) -> str:
    parts = []
    if conversion.warped:
        parts.append(f"{conversion.warped} sources are resampled")
    if conversion.padded:
        parts.append(f"{conversion.padded} sources do not cover the grid and are padded")
    return "; ".join(parts) or "every source is on the target grid"
