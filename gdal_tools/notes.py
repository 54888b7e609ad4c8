"""What was decided about the sources that a user may want otherwise; none of it is an error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chronozarr_core.grid import RasterGrid
from gdal_tools.placement import Placement
from gdal_tools.sources import Source, SourceOptions


def notes_on(
    sources: Sequence[Source], places: Sequence[Placement | None], grid: RasterGrid, options: SourceOptions
) -> Iterator[str]:
    """One sentence for each thing to know before a conversion."""
    if not options.ignore_declared_nodata:
        yield from _silent_sources(sources)
    both = [source for source in sources if source.has_plane and _declared([source])]
    if both:
        yield f"{both[0].where} has an alpha band or mask and declares nodata: the alpha or mask decides"
    if any(band.color == "palette" for source in sources for band in source.header.bands):
        yield "a colour table says that values are classes: coarser levels, block means, say nothing of them (§6)"
    cut = [
        source
        for source, placed in zip(sources, places, strict=True)
        if placed is not None and source.grid is not None and not placed.lies_within(source.grid, grid)
    ]
    if cut:
        yield f"{len(cut)} sources reach beyond the target grid and are cropped, {cut[0].where} among them"


def _silent_sources(sources: Sequence[Source]) -> Iterator[str]:
    """Sources without nodata beside others that declare one, whose value may be a fill all the same."""
    declared = sorted(_declared(sources))
    silent = [source for source in sources if not source.has_plane and not any(source.missing)]
    if declared and silent:
        who = (
            f"{silent[0].where} declares" if len(silent) == 1 else f"{len(silent)} sources ({silent[0].where}) declare"
        )
        values = ", ".join(f"{value:.12g}" for value in declared)
        yield f"{who} no nodata while others declare {values}: data there; if not, add --nodata {declared[0]:.12g}"


def _declared(sources: Sequence[Source]) -> set[float]:
    return {band.nodata for source in sources for band in source.header.bands if band.nodata is not None}
