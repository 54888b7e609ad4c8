"""Rules of the array documents, and of what the coordinates and the volatility hold (§2, §5, §8)."""

from __future__ import annotations

import numpy as np

from chronozarr_core.errors import CorruptStoreError
from chronozarr_core.instants import CALENDAR, UNITS, format_instant
from chronozarr_core.json_values import is_count, is_number, shown
from chronozarr_core.validate import members
from chronozarr_core.validate.members import compressor_problems, problems
from chronozarr_core.validate.rules import Found, UnknownError, rule
from chronozarr_core.validate.subject import LARGEST_CHUNK, PLANES, ROLES, ArrayNode, Subject

_PIXEL_TOLERANCE = 1e-6


@rule(None, ArrayNode, structural=True)
def array_has_its_members(array: ArrayNode) -> Found:
    """An array document has what Zarr v3 and its role ask for (§2.1, §2.2, §2.4, §2.5, §5)."""
    for key, message in problems(members.ARRAY, array.document, ""):
        yield array.key, f"{key[1:]} {message}"


@rule(None, ArrayNode, structural=True)
def array_has_its_dimensions(array: ArrayNode) -> Found:
    """Shape and chunk shape have one length per dimension."""
    for name, found in (
        ("shape", array.member("shape")),
        ("chunk_shape", array.member("chunk_grid")["configuration"]["chunk_shape"]),
    ):
        if len(found) != len(array.dims):
            yield array.key, f"{name} is {shown(found)}: expected one length for each of {list(array.dims)}"


@rule("§2.2", ArrayNode)
def dimensions_are_named(array: ArrayNode) -> Found:
    """``dimension_names`` is set on every array (§2.2)."""
    if array.document.get("dimension_names") != list(array.dims):
        found = array.document.get("dimension_names")
        yield array.key, f"dimension_names is {shown(found)}: expected {list(array.dims)}"


@rule("§2.2", ArrayNode)
def dimensions_are_named_in_attributes(array: ArrayNode) -> Found:
    """``_ARRAY_DIMENSIONS`` is set on every array to the same list (§2.2)."""
    found = array.attributes.get("_ARRAY_DIMENSIONS")
    if found != list(array.dims):
        yield array.key, f"attribute _ARRAY_DIMENSIONS is {shown(found)}: expected {list(array.dims)}"


@rule(None, ArrayNode, structural=True)
def data_type_is_one_of_its_role(array: ArrayNode) -> Found:
    """The data type is one that the array may have."""
    allowed = ROLES[array.role].data_types
    if array.data_type not in allowed:
        yield array.key, f"data_type is {shown(array.data_type)}: expected {' or '.join(allowed)}"


@rule("§2.1", ArrayNode, structural=True)
def data_type_is_that_of_every_level(array: ArrayNode) -> Found:
    """The data type is identical at every level (§2.1)."""
    expected = array.subject.dtype.name
    if array.role == "data" and array.data_type != expected and array.data_type in ROLES["data"].data_types:
        yield array.key, f"data_type is {array.data_type}: expected {expected}, the same at every level"


def _shape_findings(array: ArrayNode, dims: tuple[str, ...]) -> Found:
    for name, found, expected in zip(array.dims, array.shape, array.expected_shape, strict=True):
        if name in dims and found != expected:
            yield array.key, f"shape has {found} along {name}: expected {expected}"


@rule(None, ArrayNode, structural=True)
def array_has_every_timestep_band_and_cell(array: ArrayNode) -> Found:
    """Lengths along time, band and cells are the store's."""
    yield from _shape_findings(array, ("time", "band", "row", "col"))


@rule("§6", ArrayNode, structural=True)
def level_has_half_the_pixels_of_the_one_below(array: ArrayNode) -> Found:
    """H_k = ceil(H_{k-1} / 2), and W_k likewise (§6)."""
    yield from _shape_findings(array, ("y", "x"))


@rule(None, ArrayNode, structural=True)
def chunk_is_a_cell_of_a_timestep(array: ArrayNode) -> Found:
    """Chunks are [1, n_band, cs, cs], of planes [1, cs, cs], with one cs (§2.1, §2.4)."""
    size = array.subject.chunk_size
    expected = {"data": (1, array.subject.n_band, size, size)}.get(array.role, (1, size, size))
    if array.role in ("data", *PLANES) and array.chunk_shape != expected:
        yield array.key, f"chunk_shape is {list(array.chunk_shape)}: expected {list(expected)}, the same at every level"


@rule("§2.1", Subject, structural=True)
def chunk_size_is_even(subject: Subject) -> Found:
    """``cs`` is even (§2.1)."""
    size = subject.chunk_size
    if size % 2:
        yield subject.of_role("data")[0].key, f"cells have {size} pixels: expected an even number"


@rule("§2.1", Subject, structural=True)
def chunk_fits_a_codec(subject: Subject) -> Found:
    """A chunk is no larger than what codecs hold (§2.1, §8)."""
    nbytes = subject.n_band * subject.chunk_size**2 * subject.dtype.itemsize
    if nbytes > LARGEST_CHUNK:
        yield subject.of_role("data")[0].key, f"chunks have {nbytes} bytes: expected at most {LARGEST_CHUNK}"


@rule("§5", ArrayNode)
def volatility_is_a_single_chunk(array: ArrayNode) -> Found:
    """Volatility is a single chunk (§5)."""
    if array.role == "volatility" and any(
        chunk < length for chunk, length in zip(array.chunk_shape, array.shape, strict=True)
    ):
        yield array.key, f"chunk_shape is {list(array.chunk_shape)}: expected a single chunk of {list(array.shape)}"


@rule("§8", ArrayNode, structural=True)
def codecs_are_bytes_and_a_compression(array: ArrayNode) -> Found:
    """Codecs are bytes, or vlen-utf8 for strings, and exactly one of the three (§8, §2.2)."""
    if array.is_sharded:
        return
    codecs = array.member("codecs")
    names = [codec["name"] for codec in codecs]
    first = "vlen-utf8" if array.data_type == "string" else "bytes"
    if len(codecs) != 2 or names[0] != first:
        yield array.key, f"codecs are {shown(names)}: expected {first}, then one of {', '.join(members.COMPRESSORS)}"
        return
    for message in compressor_problems(codecs[1]):
        yield array.key, message


def _itemsize(array: ArrayNode) -> int:
    if array.data_type not in ROLES[array.role].data_types or array.data_type == "string":
        raise UnknownError("no element size")
    return np.dtype(array.data_type).itemsize


@rule("§8", ArrayNode, structural=True)
def bytes_are_little_endian(array: ArrayNode) -> Found:
    """Bytes are little-endian; one-byte types may leave it out (§8, §2.3)."""
    codec = array.member("codecs")[0]
    endian = codec.get("configuration", {}).get("endian")
    omitted = endian is None and _itemsize(array) == 1
    if codec["name"] == "bytes" and endian != "little" and not omitted:
        yield array.key, f"the bytes codec has endian {shown(endian)}: expected 'little'"


@rule("§8", ArrayNode)
def blosc_has_the_element_size(array: ArrayNode) -> Found:
    """``typesize`` of blosc is the element size (§8)."""
    codec = array.member("codecs")[-1]
    if codec["name"] != "blosc":
        return
    found, allowed = codec.get("configuration", {}).get("typesize"), {_itemsize(array)}
    if array.role in PLANES:
        allowed.add(array.subject.dtype.itemsize)
    if is_count(found) and found not in allowed:
        yield array.key, f"blosc typesize is {found}: expected {_itemsize(array)}, the element size in bytes"


@rule("§8", ArrayNode, structural=True)
def data_and_planes_have_one_codec(array: ArrayNode) -> Found:
    """One codec chain applies to data, mask and coverage (§8)."""
    if array.role in ("data", *PLANES) and array.compression != array.subject.compression:
        yield array.key, f"compression is {array.compression}: expected {array.subject.compression}, as other arrays"


@rule("§2.3", ArrayNode, structural=True)
def fill_value_is_nodata(array: ArrayNode) -> Found:
    """``fill_value`` of data is nodata, or 0 where that is null (§2.3)."""
    if array.role != "data":
        return
    nodata, found = array.subject.nodata, array.member("fill_value")
    expected = 0 if nodata is None else nodata
    if not is_number(found) or found != expected:
        yield array.key, f"fill_value is {shown(found)}: expected {expected}, {_because(nodata)}"


def _because(nodata: float | None) -> str:
    return "since there is no nodata" if nodata is None else "chronozarr.nodata"


@rule("§2.3", ArrayNode)
def nodata_attribute_is_nodata(array: ArrayNode) -> Found:
    """The ``nodata`` attribute of data equals the store's, and is absent where that is null (§2.3)."""
    if array.role != "data":
        return
    nodata, found = array.subject.nodata, array.attributes.get("nodata")
    if nodata is None and found is not None:
        yield array.key, f"attribute nodata is {shown(found)}: expected none, since chronozarr.nodata is null"
    elif nodata is not None and not (is_number(found) and found == nodata):
        yield array.key, f"attribute nodata is {shown(found)}: expected {nodata}, chronozarr.nodata"


@rule(None, ArrayNode, structural=True)
def plane_is_filled_with_0(array: ArrayNode) -> Found:
    """``fill_value`` of a plane is 0 (§2.4, §2.5)."""
    found = array.member("fill_value")
    if array.role in PLANES and not (is_number(found) and found == 0):
        yield array.key, f"fill_value is {shown(found)}: expected 0"


@rule("§2.2", ArrayNode)
def time_says_what_it_counts(array: ArrayNode) -> Found:
    """``time`` has units and calendar (§2.2)."""
    for name, expected in (("units", UNITS), ("calendar", CALENDAR)) if array.role == "time" else ():
        if array.attributes.get(name) != expected:
            yield array.key, f"attribute {name} is {shown(array.attributes.get(name))}: expected {expected!r}"


@rule(None, ArrayNode)
def values_decode(array: ArrayNode) -> Found:
    """Chunks of coordinates and the volatility decode."""
    if array.is_readable:
        try:
            array.values()
        except CorruptStoreError as error:
            yield array.key, str(error)


@rule("§2.2", ArrayNode)
def time_is_identical_at_every_level(array: ArrayNode) -> Found:
    """``time`` is identical at every level (§2.2)."""
    if array.role == "time":
        found, expected = array.subject.coordinate(array), array.subject.agreed_instants
        for t in np.flatnonzero(found != expected)[:1]:
            yield array.key, f"timestep {t} is {found[t]} ms: expected {expected[t]}, as at other levels and in times"


@rule("§3.5", Subject)
def times_mirror_the_coordinate(subject: Subject) -> Found:
    """``times`` renders the ``time`` coordinate (§2.2, §3.5)."""
    found, expected = subject.instants, subject.agreed_instants
    if len(found) == len(expected):
        for t in np.flatnonzero(found != expected):
            yield (
                f"chronozarr.times[{t}]",
                f"is {shown(subject.member('times')[t])}: expected {_rendered(int(expected[t]))}, the time coordinate",
            )


def _rendered(milliseconds: int) -> str:
    """An instant as text; its milliseconds where no date of four-digit years names it."""
    if abs(milliseconds) > 2**47:
        return f"{milliseconds} ms"
    return format_instant(np.datetime64(milliseconds, "ms"))


@rule("§2.2", Subject)
def times_increase(subject: Subject) -> Found:
    """Times are strictly increasing (§2.2)."""
    instants = subject.agreed_instants
    for t in np.flatnonzero(instants[1:] <= instants[:-1]):
        yield f"chronozarr.times[{t + 1}]", "is not after the timestep before: expected strictly increasing times"


@rule("§2.2", ArrayNode)
def band_holds_the_names_or_indices(array: ArrayNode) -> Found:
    """``band`` holds the names, or the indices 0 to n_band - 1 (§2.2)."""
    if array.role != "band":
        return
    found = array.subject.coordinate(array).tolist()
    names = array.data_type == "string"
    expected = list(array.subject.agreed_names) if names else list(range(array.subject.n_band))
    if found != expected:
        yield array.key, f"holds {shown(found)}: expected {shown(expected)}"


@rule("§2.2", ArrayNode)
def band_has_one_data_type(array: ArrayNode) -> Found:
    """``band`` is identical at every level (§2.2)."""
    first = next(iter(array.subject.of_role("band")))
    if array.role == "band" and array.data_type != first.data_type:
        yield array.key, f"data_type is {array.data_type}: expected {first.data_type}, identical at every level"


@rule("§2.2", ArrayNode)
def coordinates_are_pixel_centres(array: ArrayNode) -> Found:
    """``y`` and ``x`` are projected coordinates of pixel centres (§2.2)."""
    if array.role not in ("y", "x"):
        return
    found, grid = array.subject.coordinate(array), array.subject.grid(array.level)
    expected, pixel = (grid.y, grid.transform[4]) if array.role == "y" else (grid.x, grid.transform[0])
    for n in np.flatnonzero(~(np.abs(found - expected) <= abs(pixel) * _PIXEL_TOLERANCE))[:1]:
        yield array.key, f"{array.role}[{n}] is {found[n]}: expected {expected[n]}, the pixel's centre"


@rule("§5", Subject)
def volatility_is_from_0_to_1(subject: Subject) -> Found:
    """Volatility is clipped to 0..1 (§5)."""
    for array in subject.of_role("volatility"):
        found = subject.coordinate(array)
        if not ((found >= 0) & (found <= 1)).all():
            yield array.key, f"holds values from {found.min()} to {found.max()}: expected 0 to 1"


@rule("§5", Subject)
def volatility_is_0_without_deltas(subject: Subject) -> Found:
    """Volatility is 0 where a cell has no delta timesteps (§5)."""
    deltas = subject.references if subject.is_star_delta else subject.n_time > 1
    for array in subject.of_role("volatility"):
        found = subject.coordinate(array)
        if not deltas and found.any():
            yield array.key, f"holds {found.max()}: expected 0, since no timestep refers to another"
