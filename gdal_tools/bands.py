"""Bands of a series: names, common names, scale, offset and units, the same in every source or refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chronozarr_core.model import Band
from gdal_tools.problems import Problem
from gdal_tools.rasters import BandHeader

COLORS = ("red", "green", "blue")


def data_bands(bands: Sequence[BandHeader]) -> tuple[BandHeader, ...]:
    """The bands that hold data: all but the alpha band."""
    return tuple(band for band in bands if band.color != "alpha")


def describe_bands(headers: Sequence[BandHeader], names: Sequence[str]) -> tuple[Band, ...]:
    """Band objects of one source (§3.6).

    ``names`` are the manifest's and replace everything; otherwise a band is called by its description, its colour
    (which is then its common name too), or its number from 1.
    """
    return tuple(_band(header, names[index] if names else "", number=index + 1) for index, header in enumerate(headers))


def _band(header: BandHeader, given: str, number: int) -> Band:
    color = header.color if header.color in COLORS and not given and not header.description else None
    return Band(
        name=given or header.description or color or str(number),
        common_name=color,
        scale=header.scale,
        offset=header.offset,
        units=header.unit or None,
    )


def name_problems(where: str, bands: Sequence[Band]) -> Iterator[Problem]:
    """Names that a store cannot hold."""
    names = [band.name for band in bands]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        yield Problem(where, f"several bands are called {', '.join(twice)}", "name them in the manifest's bands column")


def band_problems(where: str, bands: Sequence[Band], first: Sequence[Band], first_where: str) -> Iterator[Problem]:
    """How the bands of a source differ from the first source's."""
    if len(bands) != len(first):
        yield Problem(where, f"{len(bands)} bands, {first_where} has {len(first)}", "give every date the same bands")
        return
    if [band.name for band in bands] != [band.name for band in first]:
        yield Problem(
            where,
            f"bands are called {_names(bands)}, in {first_where} {_names(first)}",
            "name them alike in the manifest's bands column",
        )
    for mine, theirs in zip(bands, first, strict=True):
        if (mine.scale, mine.offset, mine.units) != (theirs.scale, theirs.offset, theirs.units):
            yield Problem(
                where,
                f"band {mine.name} is {_scaling(mine)}, in {first_where} {_scaling(theirs)}",
                "a store has one scale, offset and unit for each band: convert the files to the same first",
            )


def _names(bands: Sequence[Band]) -> str:
    return ", ".join(band.name for band in bands)


def _scaling(band: Band) -> str:
    return f"stored * {band.scale:g} + {band.offset:g} {band.units or ''}".rstrip()
