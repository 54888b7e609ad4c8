"""What the members of the JSON documents must look like, as tables (§3, §4.1)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from chronozarr_core.dtypes import DTYPES
from chronozarr_core.json_values import (
    Check,
    is_codec,
    is_count,
    is_epsg,
    is_integer,
    is_node_path,
    is_number,
    is_object,
    is_references,
    is_text,
    is_variable,
    list_of,
    shown,
)
from chronozarr_core.validate.rules import Found, UnknownError

_ABSENT = object()


def _is_version(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"0\.[12]\.\d+\S*", value) is not None


def _is_nodata(value: Any) -> bool:
    return value is None or is_number(value)


def _is_chunk_grid(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("name") != "regular":
        return False
    configuration = value.get("configuration")
    return isinstance(configuration, dict) and list_of(is_count)(configuration.get("chunk_shape"))


def _is_default_encoding(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("name") != "default":
        return False
    configuration = value.get("configuration", {})
    return isinstance(configuration, dict) and configuration.get("separator", "/") == "/"


@dataclass(frozen=True)
class Member:
    """One member of a JSON object: what it must be, whether it must be there, and whether v0.2 added it."""

    name: str
    expected: str
    check: Check
    required: bool = True
    added: bool = False

    def of(self, document: Mapping[str, Any]) -> Any:
        """The member; raises :class:`UnknownError` where it is absent or not what it must be."""
        value = document.get(self.name, _ABSENT)
        if value is _ABSENT or not self.check(value):
            raise UnknownError(f"{self.name} is no {self.expected}")
        return value

    def problem(self, document: Mapping[str, Any], old: bool = False) -> str | None:
        """What is wrong with the member; ``old`` in a v0.1 document, where what v0.2 added may be absent."""
        value = document.get(self.name, _ABSENT)
        if value is _ABSENT:
            return f"is missing: expected {self.expected}" if self.required and not (old and self.added) else None
        return None if self.check(value) else f"is {shown(value)}: expected {self.expected}"


Table = dict[str, Member]


def _table(*members: Member) -> Table:
    return {member.name: member for member in members}


def problems(table: Table, document: Any, key: str, old: bool = False) -> Found:
    """Each member of a table that is wrong in a document; keys are ``key.name``."""
    if not isinstance(document, dict):
        yield key, f"is {shown(document)}: expected an object"
        return
    for member in table.values():
        message = member.problem(document, old)
        if message:
            yield f"{key}.{member.name}", message


def as_object(value: Any) -> dict[str, Any]:
    """The JSON object, or :class:`UnknownError` where it is none."""
    if not isinstance(value, dict):
        raise UnknownError(f"{shown(value)} is no object")
    return value


def well_formed(table: Table, entries: Any) -> Iterator[dict[str, Any]]:
    """Entries of a list that are objects with every required member as it must be; raises where one is not."""
    if not isinstance(entries, list):
        raise UnknownError("no list")
    for entry in entries:
        if any(problems(table, entry, "")):
            raise UnknownError("an entry is malformed")
        yield entry


_TRANSFORM = Member("transform", "six numbers", list_of(is_number, 6))
_RESOLUTION = Member("resolution", "a number", is_number)

BLOCK = _table(
    Member("spec_version", "0.1.x or 0.2.x", _is_version),
    Member("variable", "the name of the data array in each level group", is_variable, added=True),
    Member("times", "a list of ISO-8601 strings, one per timestep", list_of(is_text)),
    Member("bands", "a list of band objects", list_of(lambda band: is_object(band) or is_text(band))),
    Member("band_names", "a list of the bands' names", list_of(is_text), added=True),
    Member("nodata", "a finite number or null", _is_nodata, added=True),
    Member("crs", "EPSG:<code>", is_epsg),
    Member("temporal", "an object (§4.1)", is_object),
    Member("volatility_path", "the path of the volatility array", is_node_path, added=True),
    Member("provenance", "an object (§3.8)", is_object, required=False),
    Member("levels", "a list with one object per level (§3.7)", list_of(is_object), added=True),
)
BAND = _table(
    Member("name", "a name", is_text),
    Member("common_name", "text", is_text, required=False),
    Member("scale", "a finite number", is_number, required=False),
    Member("offset", "a finite number", is_number, required=False),
    Member("units", "text", lambda value: isinstance(value, str), required=False),
)
PROVENANCE = _table(
    Member("sources", "a list of collection ids or URLs", lambda value: value == [] or list_of(is_text)(value)),
    Member("composite", "text", lambda value: isinstance(value, str)),
    Member("gap_fill", "'carry-forward' or 'none'", lambda value: value in ("carry-forward", "none")),
    Member("notes", "text", lambda value: isinstance(value, str), required=False),
)
LEVEL = _table(
    Member("path", "the level group's name", is_text),
    _RESOLUTION,
    _TRANSFORM,
    Member("shape", "[n_time, n_band, H, W]", list_of(is_count, 4)),
    Member("grid", "[rows, cols] of cells", list_of(is_count, 2)),
)
STAR_DELTA = _table(
    Member("anchor_interval", "an integer of at least 1", is_count),
    Member("anchor_indices", "a list of timesteps", list_of(is_integer)),
    Member("delta_reference", "an object of timesteps in decimal and the anchors they refer to", is_references),
)
SELECTION = _table(
    Member("mode", "'auto'", lambda value: value == "auto"),
    Member("sampled_cells", "an integer of at least 1", is_count),
    Member("ratio", "a number of at least 0", lambda value: is_number(value) and value >= 0),
)
DATASET = _table(Member("path", "the level group's name", is_text), Member("crs", "EPSG:<code>", is_text))
MULTISCALE = _table(
    Member("datasets", "a list with one object per level", list_of(is_object)),
    Member("type", "text", is_text),
    Member("metadata", "an object", is_object),
)
MULTISCALE_METADATA = _table(
    Member("method", "text", is_text),
    Member("version", "text", is_text),
    Member("args", "a list or an object", lambda value: isinstance(value, list | dict)),
)
GROUP = _table(Member("crs", "EPSG:<code>", is_text), _TRANSFORM, _RESOLUTION)
ARRAY = _table(
    Member("zarr_format", "3", lambda value: value == 3),
    Member("node_type", "'array'", lambda value: value == "array"),
    Member("shape", "a list of lengths of at least 1", list_of(is_count)),
    Member("data_type", f"one of {', '.join(DTYPES)}, or a coordinate's", is_text),
    Member("chunk_grid", "a regular grid with a chunk_shape", _is_chunk_grid),
    Member("chunk_key_encoding", "default with separator '/'", _is_default_encoding),
    Member("fill_value", "a value", lambda _: True),
    Member("codecs", "a list of codecs, each an object with a name", list_of(is_codec)),
    Member("attributes", "an object", is_object),
)

_LEVEL = "level"
COMPRESSORS = {
    "zstd": _table(
        Member(_LEVEL, "an integer of at most 22", lambda value: is_integer(value) and value <= 22),
        Member("checksum", "false or true", lambda value: isinstance(value, bool), required=False),
    ),
    "gzip": _table(Member(_LEVEL, "an integer from 1 to 9", lambda value: is_integer(value) and 1 <= value <= 9)),
    "blosc": _table(
        Member("cname", "'zstd' or 'lz4'", lambda value: value in ("zstd", "lz4")),
        Member("shuffle", "'noshuffle' or 'shuffle'", lambda value: value in ("noshuffle", "shuffle")),
        Member("clevel", "an integer from 0 to 9", lambda value: is_integer(value) and 0 <= value <= 9),
        Member("blocksize", "0", lambda value: is_integer(value) and value == 0),
        Member("typesize", "the element size in bytes", is_count),
    ),
}


def compressor_problems(codec: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the compression codec of an array (§8)."""
    table = COMPRESSORS.get(codec["name"])
    if table is None:
        yield f"compression codec is {shown(codec['name'])}: expected one of {', '.join(COMPRESSORS)}"
        return
    for key, message in problems(table, codec.get("configuration", {}), codec["name"]):
        yield f"{key} {message}"
