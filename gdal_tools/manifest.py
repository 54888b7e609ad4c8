"""Manifests: which file shows which date. CSV ``uri,datetime[,bands]`` or JSON with ``items``."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from chronozarr_core.errors import ChronozarrError
from chronozarr_core.instants import format_instant, parse_instant
from gdal_tools.problems import Problem, refuse

Bounds = tuple[float, float, float, float]
"""West, south, east, north of the outer pixel edges."""

_SCHEMES = {
    "http://": "/vsicurl/http://",
    "https://": "/vsicurl/https://",
    "s3://": "/vsis3/",
    "gs://": "/vsigs/",
    "az://": "/vsiaz/",
    "file://": "/",
}
_GDAL_NAME = re.compile(r"^(/vsi|[A-Za-z0-9_]{2,}:)")


@dataclass(frozen=True)
class Part:
    """One file of a frame: ``uri`` as GDAL opens it, ``bands`` its names where the manifest gives them."""

    uri: str
    bands: tuple[str, ...]
    where: str


@dataclass(frozen=True)
class Frame:
    """One date: one file with all bands, or one file for each band."""

    instant: np.datetime64
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Manifest:
    """The frames of a series in time order, and the extent where the manifest gives one."""

    path: Path
    frames: tuple[Frame, ...]
    bounds: Bounds | None = None


def read_manifest(path: Path) -> Manifest:
    """Read a manifest; rows come in any order.

    Raises
    ------
    SourceProblemsError
        Rows without uri, datetimes that are no dates, several rows for one date that do not name one band each.
    ChronozarrError
        The file is missing, not UTF-8, or neither CSV nor JSON of the expected form.
    """
    text = _read_text(path)
    bounds = None
    if path.suffix.lower() == ".json":
        rows, bounds = _json_rows(path, text)
    else:
        rows = _csv_rows(path, text)
    problems: list[Problem] = []
    dated = list(_dated_parts(path, rows, problems))
    refuse(str(path), problems)
    if not dated:
        raise ChronozarrError(f"{path} lists no files: give at least one row with uri and datetime")
    return Manifest(path, _frames(path, dated), bounds)


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ChronozarrError(
            f"{path} is not UTF-8 (byte {error.start} is {error.object[error.start]:#04x}): save it as UTF-8"
        ) from None
    except OSError as error:
        raise ChronozarrError(f"cannot read the manifest {path}: {error.strerror}") from None


Row = tuple[str, Mapping[str, Any]]


def _csv_rows(path: Path, text: str) -> list[Row]:
    header = text.split("\n", 1)[0]
    delimiter = ";" if ";" in header and "," not in header else ","
    reader = csv.DictReader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True)
    names = [(name or "").strip().lower() for name in reader.fieldnames or []]
    if not {"uri", "datetime"} <= set(names):
        raise ChronozarrError(
            f"{path} has columns {', '.join(names) or 'none'}: expected uri,datetime and optionally bands"
        )
    reader.fieldnames = names
    return [(f"row {reader.line_num}", row) for row in reader if any(row.values())]


def _json_rows(path: Path, text: str) -> tuple[list[Row], Bounds | None]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ChronozarrError(f"{path} is not JSON: {error}") from None
    items = document.get("items") if isinstance(document, dict) else document
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ChronozarrError(f'{path} has no list of items: expected {{"items": [{{"uri": ..., "datetime": ...}}]}}')
    bounds = document.get("bounds") if isinstance(document, dict) else None
    return [(f"item {number}", item) for number, item in enumerate(items)], _bounds(path, bounds)


def _bounds(path: Path, bounds: Any) -> Bounds | None:
    if bounds is None:
        return None
    if not isinstance(bounds, list) or len(bounds) != 4 or not all(isinstance(edge, int | float) for edge in bounds):
        raise ChronozarrError(f"{path} has bounds {bounds!r}: expected [west, south, east, north]")
    west, south, east, north = (float(edge) for edge in bounds)
    return west, south, east, north


def _dated_parts(path: Path, rows: Sequence[Row], problems: list[Problem]) -> Iterator[tuple[np.datetime64, Part]]:
    for number, row in rows:
        uri, text = row.get("uri"), row.get("datetime")
        where = f"{path.name} {number}" + (f" ({uri})" if uri else "")
        if not isinstance(uri, str) or not uri.strip():
            problems.append(Problem(where, "there is no uri", "name the file"))
        elif not isinstance(text, str) or not text.strip():
            problems.append(Problem(where, "there is no datetime", "give the date as ISO 8601, for example 2024-03-01"))
        else:
            try:
                yield parse_instant(text), Part(resolve_uri(uri.strip(), path.parent), _names(row.get("bands")), where)
            except ChronozarrError as error:
                problems.append(Problem(where, f"datetime {error}", "correct it"))


def _names(bands: Any) -> tuple[str, ...]:
    """Band names: a JSON list, or text separated by ``;``, ``|`` or ``,``."""
    names = bands if isinstance(bands, list) else re.split(r"[;|,]", bands or "")
    return tuple(str(name).strip() for name in names if str(name).strip())


def resolve_uri(uri: str, folder: Path) -> str:
    """What GDAL opens for a URI: relative paths are relative to ``folder``, URLs become virtual file systems."""
    for scheme, prefix in _SCHEMES.items():
        if uri.startswith(scheme):
            return prefix + uri.removeprefix(scheme).lstrip("/" if scheme == "file://" else "")
    if _GDAL_NAME.match(uri) and not (folder / uri).exists():
        return uri
    return str(folder / uri)


def _frames(path: Path, dated: Sequence[tuple[np.datetime64, Part]]) -> tuple[Frame, ...]:
    ordered = sorted(dated, key=lambda pair: pair[0])  # stable: parts of one date keep the manifest's order
    frames = [
        Frame(instant, tuple(part for _, part in pairs))
        for instant, pairs in groupby(ordered, key=lambda pair: pair[0])
    ]
    refuse(str(path), [problem for frame in frames for problem in _same_date_problems(frame)])
    refuse(str(path), list(_band_set_problems(frames)))
    return tuple(_in_order(frame, frames[0]) for frame in frames)


def _same_date_problems(frame: Frame) -> Iterator[Problem]:
    """Several files of one date are its bands, and only that: each names one, and no two the same."""
    if len(frame.parts) == 1:
        return
    date = format_instant(frame.instant)
    listed = " and ".join(part.where for part in frame.parts[:4])
    names = [name for part in frame.parts for name in part.bands]
    if any(len(part.bands) != 1 for part in frame.parts):
        yield Problem(
            listed,
            f"{len(frame.parts)} files have the datetime {date}",
            "give each its own date or time, or name one band for each in the bands column",
        )
    elif len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        yield Problem(
            listed, f"band {', '.join(twice)} of {date} is given more than once", "keep one file for each band"
        )


def _band_set_problems(frames: Sequence[Frame]) -> Iterator[Problem]:
    """Where files are bands, every date has the same ones as the first."""
    first = {part.bands for part in frames[0].parts}
    for frame in frames[1:]:
        found = {part.bands for part in frame.parts}
        if max(len(first), len(found)) > 1 and found != first:
            yield Problem(
                frame.parts[0].where,
                f"{format_instant(frame.instant)} has bands {_listed(found)}, the first date has {_listed(first)}",
                "give every date the same bands",
            )


def _listed(bands: set[tuple[str, ...]]) -> str:
    return ", ".join(sorted(name for names in bands for name in names)) or "without names"


def _in_order(frame: Frame, first: Frame) -> Frame:
    if len(frame.parts) == 1:
        return frame
    order = {part.bands: number for number, part in enumerate(first.parts)}
    return Frame(frame.instant, tuple(sorted(frame.parts, key=lambda part: order[part.bands])))
