"""``chronozarr validate``, ``info`` and ``export-cog``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from chronozarr_core.errors import ChronozarrError
from chronozarr_core.model import TemporalEncoding
from chronozarr_core.store import ChronoStore, open_store
from chronozarr_core.validate import validate
from gdal_tools.cli.options import progress_bar, quiet_option
from gdal_tools.cog import COMPRESSIONS, export_cogs, parse_times


@click.command("validate")
@click.argument("store", type=click.Path(path_type=Path))
@click.option("--metadata-only", is_flag=True, help="Check documents and coordinates, but read no chunk of data.")
@quiet_option
def validate_command(store: Path, metadata_only: bool, quiet: bool) -> None:
    """Check STORE against the chronozarr specification; list every finding. Exit status 1 if there is any."""
    with progress_bar("validating", quiet) as progress:
        findings = validate(store, content=not metadata_only, progress=progress)
    for finding in findings:
        click.echo(f"{finding.section:<6} {finding.key}: {finding.message}")
    if findings:
        raise ChronozarrError(f"{store} does not conform to the specification: {len(findings)} findings")
    if not quiet:
        click.echo(f"{store} conforms to chronozarr {open_store(store).metadata.spec_version}")


@click.command("info")
@click.argument("store", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="The same for programs.")
def info_command(store: Path, as_json: bool) -> None:
    """Show times, bands, encoding and levels of STORE."""
    opened = open_store(store)
    if as_json:
        click.echo(json.dumps(describe(opened), indent=2, ensure_ascii=False))
        return
    for line in table(opened):
        click.echo(line)


def describe(store: ChronoStore) -> dict[str, Any]:
    """What ``info --json`` prints: the store's own block, and what follows from its arrays."""
    block = store.metadata.to_json()
    block["levels"] = [level.to_json() for level in store.levels]
    return {
        "store": store.location,
        "dtype": store.dtype.name,
        "chunk_size": store.chunk_size,
        "bounds": list(store.grids[0].bbox),
        **block,
    }


def table(store: ChronoStore) -> list[str]:
    """What ``info`` prints."""
    metadata, grid = store.metadata, store.grids[0]
    extras = [name for name in (metadata.mask_variable, metadata.coverage_variable) if name]
    rows = [
        ("store", store.location),
        ("version", f"chronozarr {metadata.spec_version}"),
        ("crs", metadata.crs),
        ("bounds", ", ".join(f"{edge:.12g}" for edge in grid.bbox)),
        ("times", f"{len(metadata.times)}, {metadata.times[0]} to {metadata.times[-1]}"),
        ("data", f"{store.dtype.name}, nodata {metadata.nodata if metadata.nodata is not None else 'none'}"),
        ("planes", ", ".join(extras) or "none"),
        ("temporal", _temporal(metadata.temporal)),
    ]
    if metadata.provenance:
        rows.append(("composite", metadata.provenance.composite))
    lines = [f"{name + ':':<11}{text}" for name, text in rows]
    lines += ["", *_columns(("band", "common name", "scale", "offset", "units"), [
        (band.name, band.common_name or "-", f"{band.scale:g}", f"{band.offset:g}", band.units or "-")
        for band in store.bands
    ])]  # fmt: skip
    lines += ["", *_columns(("level", "height", "width", "resolution", "cells"), [
        (level.path, str(level.shape[2]), str(level.shape[3]), f"{level.resolution:.12g}",
         f"{level.grid[0]} x {level.grid[1]} of {store.chunk_size}")
        for level in store.levels
    ])]  # fmt: skip
    return lines


def _temporal(temporal: TemporalEncoding) -> str:
    text = temporal.encoding
    if temporal.is_star_delta:
        text += f", {len(temporal.anchor_indices)} anchors (every {temporal.anchor_interval})"
        text += f", {len(temporal.delta_reference)} residuals"
    if temporal.selection:
        text += f"; auto: star-delta/plain = {temporal.selection.ratio:.2f} on {temporal.selection.sampled_cells} cells"
    return text


def _columns(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    return [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (header, *rows)
    ]


@click.command("export-cog")
@click.argument("store", type=click.Path(path_type=Path))
@click.argument("out_dir", type=click.Path(path_type=Path))
@click.option("--level", type=click.IntRange(0), default=0, show_default=True, help="Pyramid level to export.")
@click.option(
    "--times",
    multiple=True,
    help="Timesteps: indices 0,5,-1, slices 0:12:3, dates 2024-03 or 2024-03-15, "
    "ranges 2020-01..2022-06; repeatable (default: all).",
)
@click.option("--physical", is_flag=True, help="float32 of stored * scale + offset, NaN where invalid.")
@click.option(
    "--compress", type=click.Choice(COMPRESSIONS), default="deflate", show_default=True, help="Lossless compression."
)
@click.option("--workers", type=click.IntRange(1), help="Frames written at once.")
@quiet_option
def export_cog_command(
    store: Path,
    out_dir: Path,
    level: int,
    times: tuple[str, ...],
    physical: bool,
    compress: str,
    workers: int | None,
    quiet: bool,
) -> None:
    """Export timesteps of STORE as Cloud Optimized GeoTIFFs of true values in OUT_DIR.

    One file for each timestep, all bands, named L<level>_<date>.tif; its overviews are the store's coarser levels,
    exactly. A mask becomes an internal mask, nodata stays nodata; scale, offset, units, names and the date go to the
    TIFF's own metadata.
    """
    opened = open_store(store)
    chosen = parse_times(times, opened.times) if times else None
    with progress_bar("exporting", quiet) as progress:
        paths = export_cogs(
            opened, out_dir, level=level, times=chosen, physical=physical, compress=compress, workers=workers,
            progress=progress,
        )  # fmt: skip
    if not quiet:
        click.echo(f"wrote {len(paths)} files to {out_dir}, {paths[0].name} to {paths[-1].name}")
