"""Rules of the root document and the level groups (§3, §4.1)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from chronozarr_core.crs import epsg_code
from chronozarr_core.dtypes import STAR_DELTA_DTYPES, check_nodata
from chronozarr_core.errors import ChronozarrError
from chronozarr_core.json_values import is_node_path, shown
from chronozarr_core.model import Json
from chronozarr_core.plan import SAMPLED_CELLS, STAR_DELTA_RATIO
from chronozarr_core.validate import members
from chronozarr_core.validate.members import problems
from chronozarr_core.validate.rules import Found, UnknownError, rule
from chronozarr_core.validate.subject import PLANES, ROLES, LevelGroup, Subject, each, milliseconds, ordered

ROOT_KEY = "zarr.json"
_TOLERANCE = 1e-9
_STAR_DELTA_MEMBERS = ("anchor_interval", "anchor_indices", "delta_reference")


def _is_group(document: Json) -> bool:
    return document.get("zarr_format") == 3 and document.get("node_type") == "group"


@rule("§2", Subject)
def root_is_a_group(subject: Subject) -> Found:
    """The root document is a Zarr v3 group with attributes (§2)."""
    if not _is_group(subject.root):
        found = {name: subject.root.get(name) for name in ("zarr_format", "node_type")}
        yield ROOT_KEY, f"says {shown(found)}: expected a Zarr v3 group"
    if not isinstance(subject.root.get("attributes"), dict):
        yield ROOT_KEY, "has no attributes object: not a chronozarr store"


@rule("§3.1", Subject)
def multiscales_has_one_entry(subject: Subject) -> Found:
    """``multiscales`` is a list of exactly one entry (§3.1, §3.4)."""
    entries = subject.attributes.get("multiscales")
    if not isinstance(entries, list):
        yield "multiscales", f"is {shown(entries)}: expected a list with one entry (§3.4)"
    elif len(entries) != 1:
        yield "multiscales", f"has {len(entries)} entries: expected exactly one"


@rule("§3.1", Subject)
def block_is_an_object(subject: Subject) -> Found:
    """The root has a ``chronozarr`` block (§3.1)."""
    block = subject.attributes.get("chronozarr")
    if not isinstance(block, dict):
        yield "chronozarr", f"is {shown(block)}: expected an object; without it this is not a chronozarr store"


@rule("§3.2", Subject, structural=True)
def block_has_its_members(subject: Subject) -> Found:
    """The block has the members of its version, each of its type (§3.2)."""
    version = subject.block.get("spec_version")
    yield from problems(members.BLOCK, subject.block, "chronozarr", isinstance(version, str) and version[:4] == "0.1.")


@rule("§3.2", Subject)
def crs_is_that_of_the_levels(subject: Subject) -> Found:
    """``crs`` equals that of every level and dataset (§3.2)."""
    stated = subject.member("crs")
    if stated != subject.crs:
        yield "chronozarr.crs", f"is {stated}, and the levels have {subject.crs}: expected the same everywhere"


@rule("§3.2", Subject)
def crs_is_known(subject: Subject) -> Found:
    """``crs`` is the code of a CRS (§3.2)."""
    try:
        epsg_code(subject.member("crs"))
    except UnknownError:
        raise
    except ChronozarrError:
        yield "chronozarr.crs", f"is {subject.member('crs')}, which is no code that PROJ knows"


@rule("§3.2", Subject, structural=True)
def there_is_a_time_per_timestep(subject: Subject) -> Found:
    """``times`` has the length n_time (§3.2)."""
    if len(subject.member("times")) != subject.n_time:
        yield (
            "chronozarr.times",
            f"has {len(subject.member('times'))} entries: expected {subject.n_time}, one per timestep",
        )


@rule("§3.2", Subject, structural=True)
def there_is_a_band_object_per_band(subject: Subject) -> Found:
    """``bands`` has the length n_band (§3.2)."""
    if len(subject.member("bands")) != subject.n_band:
        yield "chronozarr.bands", f"has {len(subject.member('bands'))} entries: expected {subject.n_band}, one per band"


@rule("§2.2", Subject)
def times_are_dates(subject: Subject) -> Found:
    """``times`` are ISO-8601 (§2.2, §3.2)."""
    for t, text in enumerate(subject.member("times")):
        try:
            milliseconds(text)
        except UnknownError as error:
            yield f"chronozarr.times[{t}]", f"is no ISO-8601 time: {error}"


@rule("§3.6", Subject)
def bands_are_band_objects(subject: Subject) -> Found:
    """Each band is an object with a name; a v0.1 store may have names alone (§3.6, §3.2)."""
    for number, band in enumerate(subject.member("bands")):
        key = f"chronozarr.bands[{number}]"
        if not isinstance(band, str):
            yield from problems(members.BAND, band, key)
        elif not subject.is_v01:
            yield key, f"is {shown(band)}, the form of v0.1: expected an object with a name"


@rule("§3.6", Subject)
def band_names_are_unique(subject: Subject) -> Found:
    """Names of bands are unique within the store (§3.6)."""
    names = subject.band_names
    for number, name in enumerate(names):
        if name in names[:number]:
            yield (
                f"chronozarr.bands[{number}].name",
                f"is {shown(name)}, as an earlier band: expected a name of its own",
            )


@rule("§2.3", Subject, structural=True)
def nodata_is_a_value_of_the_data_type(subject: Subject) -> Found:
    """``nodata`` is a finite value that the data type holds, or null (§2.3)."""
    nodata, dtype = subject.member("nodata"), subject.dtype
    try:
        check_nodata(nodata, dtype)
    except ChronozarrError as error:
        yield "chronozarr.nodata", str(error)


@rule("§3.4", Subject)
def multiscale_follows_the_schema(subject: Subject) -> Found:
    """The entry has ``type`` and ``metadata.{method, version, args}`` (§3.4)."""
    yield from problems(members.MULTISCALE, subject.multiscale, "multiscales[0]")
    metadata = members.as_object(subject.multiscale.get("metadata"))
    yield from problems(members.MULTISCALE_METADATA, metadata, "multiscales[0].metadata")


@rule("§3.4", Subject)
def datasets_have_path_and_crs(subject: Subject) -> Found:
    """Each dataset has a path and a CRS (§3.4)."""
    entries = members.MULTISCALE["datasets"].of(subject.multiscale)
    for number, entry in enumerate(entries):
        yield from problems(members.DATASET, entry, f"multiscales[0].datasets[{number}]")


@rule("§3.4", Subject)
def datasets_are_in_order(subject: Subject) -> Found:
    """Levels are listed as "0", "1", ... without gaps (§3.4, §6)."""
    paths = [dataset["path"] for dataset in subject.datasets]
    if not ordered(paths):
        yield "multiscales[0].datasets", f'lists {shown(paths)}: expected "0", "1", ... without gaps'


@rule("§3.4", Subject)
def datasets_have_the_crs(subject: Subject) -> Found:
    """``crs`` of each dataset equals the store's (§3.4, §3.2)."""
    for number, dataset in enumerate(subject.datasets):
        if dataset["crs"] != subject.crs:
            yield f"multiscales[0].datasets[{number}].crs", f"is {shown(dataset['crs'])}: expected {subject.crs}"


def _plane_findings(subject: Subject, name: str) -> Iterator[tuple[str, str]]:
    """A store has a plane at every level and says so, or at none."""
    attribute = f"{name}_variable"
    stated = subject.block.get(attribute)
    paths = [f"{level}/{name}" for level in subject.level_paths]
    if attribute in subject.block and stated != name:
        yield f"chronozarr.{attribute}", f"is {shown(stated)}: expected {name!r}, or no such member"
    elif stated == name:
        for path in paths:
            if subject.problem(path):
                yield f"{path}/zarr.json", f"{subject.problem(path)}: chronozarr.{attribute} says every level has it"
    else:
        present = [path for path in paths if not subject.problem(path)]
        if present and subject.variable != name:
            yield f"chronozarr.{attribute}", f"is missing, and there is {present[0]}: expected {name!r}"


@rule("§2.4", Subject, structural=True)
def mask_is_at_every_level_or_none(subject: Subject) -> Found:
    """A mask is at every level and named, or at none (§2.4)."""
    yield from _plane_findings(subject, "mask")


@rule("§2.5", Subject, structural=True)
def coverage_is_at_every_level_or_none(subject: Subject) -> Found:
    """Coverage is at every level and named, or at none (§2.5)."""
    yield from _plane_findings(subject, "coverage")


@rule("§2", Subject, structural=True)
def every_level_has_its_nodes(subject: Subject) -> Found:
    """Each level has its group, data array and coordinates (§2)."""
    for path in subject.level_paths:
        if subject.problem(path):
            yield f"{path}/zarr.json", f"{subject.problem(path)}: expected the level's group"
    for path, role, level in subject.places():
        if role in (*PLANES, "volatility") or subject.problem(subject.level_paths[level]):
            continue
        if subject.problem(path):
            yield f"{path}/zarr.json", f"{subject.problem(path)}: expected the array of {ROLES[role].dims}"


@rule("§5", Subject)
def there_is_a_volatility(subject: Subject) -> Found:
    """A store without volatility does not conform (§5)."""
    path = subject.volatility_path
    if subject.problem(path):
        yield f"{path}/zarr.json", f"{subject.problem(path)}: expected the volatility array"


@rule("§3.1", Subject)
def consolidated_metadata_is_that_of_the_nodes(subject: Subject) -> Found:
    """Consolidated metadata, where written, are those of every node (§3.1)."""
    if subject.root.get("consolidated_metadata") is None:
        return
    key = "zarr.json: consolidated_metadata"
    documents = members.as_object(subject.root["consolidated_metadata"]).get("metadata")
    if not isinstance(documents, dict):
        yield key, f"has metadata {shown(documents)}: expected an object of documents by path"
        return
    expected = dict.fromkeys([*subject.level_paths, *(path for path, _, _ in subject.places())])
    for path in expected | dict.fromkeys(filter(is_node_path, documents)):
        if path not in documents:
            if not subject.problem(path):
                yield key, f"lacks {path}, which the store has"
        elif subject.problem(path):
            if path not in expected:
                yield key, f"has {path}, whose own zarr.json {subject.problem(path)}"
        elif _normal(documents[path]) != _normal(subject.document(path)):
            yield key, f"differs from {path}/zarr.json: expected the same document"


@rule("§3.1", Subject)
def consolidated_metadata_is_an_object(subject: Subject) -> Found:
    """Consolidated metadata, where written, are an object (§3.1)."""
    consolidated = subject.root.get("consolidated_metadata")
    if consolidated is not None and not isinstance(consolidated, dict):
        yield "zarr.json: consolidated_metadata", f"is {shown(consolidated)}: expected an object"


def _normal(document: Any) -> Any:
    """A document without what zarr-python adds to or leaves out of a consolidated copy."""
    if not isinstance(document, dict):
        return document
    optional: Json = {"attributes": {}, "storage_transformers": []}
    return optional | {name: value for name, value in document.items() if name != "consolidated_metadata"}


@rule("§3.5", Subject)
def band_names_mirror_the_bands(subject: Subject) -> Found:
    """``band_names`` mirrors ``bands`` and the ``band`` coordinate (§3.5)."""
    names = tuple(subject.member("band_names"))
    if names != subject.agreed_names:
        yield "chronozarr.band_names", f"is {shown(list(names))}: expected {shown(list(subject.agreed_names))}"


@rule("§3.6", Subject)
def bands_have_the_names_of_the_coordinate(subject: Subject) -> Found:
    """A band's name equals the coordinate's (§3.6)."""
    found, expected = subject.band_names, subject.agreed_names
    if found != expected and len(found) == len(expected):
        yield "chronozarr.bands", f"are named {shown(found)}: expected {shown(expected)}"


@rule("§3.8", Subject)
def provenance_has_its_members(subject: Subject) -> Found:
    """``provenance`` has sources, composite and gap_fill (§3.8)."""
    if "provenance" in subject.block:
        yield from problems(members.PROVENANCE, subject.member("provenance"), "chronozarr.provenance")


@rule("§7.3", Subject)
def shard_bytes_belong_to_sharded_stores(subject: Subject) -> Found:
    """``shard_bytes`` is for sharded stores only (§7.3)."""
    if "shard_bytes" in subject.block and not subject.is_sharded:
        yield "chronozarr.shard_bytes", "is there: expected only in a store whose arrays are sharded"


@rule("§7", Subject, structural=True)
def sharded_arrays_are_not_checked(subject: Subject) -> Found:
    """Sharded arrays are named once, since their chunks are not checked (§7)."""
    sharded = next(
        (key for key, found in each(lambda array: (array.key, array.is_sharded), subject.arrays) if found), None
    )
    if sharded:
        yield sharded, "is sharded, and sharded arrays (§7) are not checked by this version"


@rule("§3.7", Subject, structural=True)
def mirrors_have_their_members(subject: Subject) -> Found:
    """Each entry of ``levels`` has its members (§3.7)."""
    for number, entry in enumerate(subject.member("levels")):
        yield from problems(members.LEVEL, entry, f"chronozarr.levels[{number}]")


@rule("§3.7", Subject)
def mirrors_are_the_levels(subject: Subject) -> Found:
    """``levels`` has an entry for each dataset, in order (§3.7)."""
    paths = [mirror["path"] for mirror in subject.mirrors]
    if paths != subject.level_paths:
        yield "chronozarr.levels", f"lists {shown(paths)}: expected {shown(subject.level_paths)} as multiscales does"


def _mirrored(subject: Subject, name: str) -> Iterator[tuple[int, str, Any]]:
    """Level, key and value of one member of each entry that is a level's."""
    if [mirror["path"] for mirror in subject.mirrors] == subject.level_paths:
        for level, mirror in enumerate(subject.mirrors):
            yield level, f"chronozarr.levels[{level}].{name}", mirror[name]


def _differs(found: Sequence[int], expected: Sequence[int]) -> str | None:
    return None if list(found) == list(expected) else f"is {shown(list(found))}: expected {list(expected)}"


@rule("§3.7", Subject)
def mirrors_have_the_shapes(subject: Subject) -> Found:
    """``shape`` of a mirror equals the data array's (§3.7)."""
    for level, key, shape in _mirrored(subject, "shape"):
        message = _differs(shape, (subject.n_time, subject.n_band, *subject.size(level)))
        if message:
            yield key, f"{message}, the data array's shape"


@rule("§3.7", Subject)
def mirrors_have_the_cell_grids(subject: Subject) -> Found:
    """``grid`` of a mirror is [ceil(H_k / cs), ceil(W_k / cs)] (§3.7)."""
    for level, key, grid in _mirrored(subject, "grid"):
        message = _differs(grid, subject.cells(level))
        if message:
            yield key, f"{message}, ceil(H / cs) and ceil(W / cs)"


@rule("§3.7", Subject)
def mirrors_have_the_transforms(subject: Subject) -> Found:
    """``transform`` of a mirror equals the level group's (§3.7)."""
    for level, key, transform in _mirrored(subject, "transform"):
        if not _close(transform, subject.transform(level)):
            yield key, f"is {transform}: expected {list(subject.transform(level))}, the level group's"


@rule("§3.7", Subject)
def mirrors_have_the_resolutions(subject: Subject) -> Found:
    """``resolution`` of a mirror equals the level group's (§3.7)."""
    for level, key, resolution in _mirrored(subject, "resolution"):
        expected = abs(subject.transform(level)[0])
        if not math.isclose(resolution, expected, rel_tol=_TOLERANCE):
            yield key, f"is {resolution}: expected {expected}, the level group's"


def _close(found: Sequence[float], expected: Sequence[float]) -> bool:
    return all(math.isclose(*pair, rel_tol=_TOLERANCE) for pair in zip(found, expected, strict=True))


@rule("§2", LevelGroup)
def level_is_a_group(group: LevelGroup) -> Found:
    """A level is a Zarr v3 group (§2)."""
    if not _is_group(group.document):
        yield group.key, "is no Zarr v3 group: expected zarr_format 3 and node_type 'group'"


@rule("§3.3", LevelGroup)
def level_has_its_attributes(group: LevelGroup) -> Found:
    """A level group has crs, transform and resolution (§3.3)."""
    for key, message in problems(members.GROUP, group.document.get("attributes"), "attributes"):
        yield group.key, f"{key} {message}"


@rule("§3.3", LevelGroup)
def level_has_the_crs(group: LevelGroup) -> Found:
    """``crs`` of a level group equals the store's (§3.3)."""
    if group.member("crs") != group.subject.crs:
        yield group.key, f"crs is {shown(group.member('crs'))}: expected {group.subject.crs}"


@rule("§3.3", LevelGroup)
def level_has_the_transform_of_its_resolution(group: LevelGroup) -> Found:
    """``transform`` of level k is [a*2^k, b, c, d, e*2^k, f] (§3.3)."""
    found, expected = group.member("transform"), group.subject.transform(group.level)
    if not _close(found, expected):
        yield group.key, f"transform is {found}: expected {list(expected)}, pixels of level 0 times 2**{group.level}"


@rule("§3.3", LevelGroup)
def level_has_its_resolution(group: LevelGroup) -> Found:
    """``resolution`` of level k is abs(a) * 2^k (§3.3)."""
    found, expected = group.member("resolution"), abs(group.subject.transform(group.level)[0])
    if not math.isclose(found, expected, rel_tol=_TOLERANCE):
        yield group.key, f"resolution is {found}: expected {expected}, the pixel width"


@rule("§2.2", Subject)
def grid_is_north_up(subject: Subject) -> Found:
    """The grid is north up: x increases and y decreases (§2.2)."""
    a, b, _, d, e, _ = subject.transform(0)
    if a <= 0 or e >= 0 or b or d:
        yield (
            f"{subject.level_paths[0]}/zarr.json",
            f"transform is {list(subject.transform(0))}: expected a > 0, e < 0 and b = d = 0",
        )


@rule("§4.1", Subject, structural=True)
def temporal_encoding_is_one_of_two(subject: Subject) -> Found:
    """``encoding`` is none or star-delta; v0.1 may leave it out (§4.1, §10)."""
    encoding = subject.temporal.get("encoding")
    if not (encoding in ("none", "star-delta") or (subject.is_v01 and "encoding" not in subject.temporal)):
        yield "chronozarr.temporal.encoding", f"is {shown(encoding)}: expected 'none' or 'star-delta'"


@rule("§4.1", Subject)
def none_has_no_schedule(subject: Subject) -> Found:
    """With none, the members of star-delta are absent (§4.1)."""
    for name in _STAR_DELTA_MEMBERS:
        if not subject.is_star_delta and name in subject.temporal:
            yield f"chronozarr.temporal.{name}", "is there: expected only with star-delta"


@rule("§4.1", Subject, structural=True)
def star_delta_has_its_schedule(subject: Subject) -> Found:
    """With star-delta, its members are there (§4.1)."""
    if subject.is_star_delta:
        yield from problems(members.STAR_DELTA, subject.temporal, "chronozarr.temporal")


@rule("§4.1", Subject, structural=True)
def anchors_follow_from_the_interval(subject: Subject) -> Found:
    """``anchor_indices`` is [0, k, 2k, ...] below n_time (§4.1)."""
    if not subject.is_star_delta:
        return
    found, expected = members.STAR_DELTA["anchor_indices"].of(subject.temporal), list(subject.anchors)
    if found != expected:
        because = f"for anchor_interval {subject.anchor_interval} and {subject.n_time} timesteps"
        yield "chronozarr.temporal.anchor_indices", f"is {shown(found)}: expected {shown(expected)} {because}"


@rule("§4.1", Subject, structural=True)
def every_other_timestep_has_a_reference(subject: Subject) -> Found:
    """Every non-anchor has a reference, and no anchor has (§4.1)."""
    if not subject.is_star_delta:
        return
    key = "chronozarr.temporal.delta_reference"
    for t in range(subject.n_time):
        if t % subject.anchor_interval and t not in subject.references:
            yield key, f"has no timestep {t}: expected every timestep that is no anchor"
    for t in subject.references:
        if t >= subject.n_time or t % subject.anchor_interval == 0:
            yield key, f"has timestep {t}: expected timesteps of the store that are no anchors"


@rule("§4.2", Subject, structural=True)
def references_name_a_near_anchor(subject: Subject) -> Found:
    """A reference names an anchor at a distance 0 < d < anchor_interval (§4.2)."""
    interval, n_time = subject.anchor_interval, subject.n_time
    for t, anchor in subject.references.items():
        is_near_anchor = 0 < abs(t - anchor) < interval and 0 <= anchor < n_time and anchor % interval == 0
        if t < n_time and t % interval and not is_near_anchor:
            yield (
                f"chronozarr.temporal.delta_reference.{t}",
                f"is {anchor}: expected an anchor fewer than {interval} timesteps away",
            )


@rule("§2.3", Subject, structural=True)
def star_delta_is_for_unsigned_integers(subject: Subject) -> Found:
    """star-delta is valid for uint8 and uint16 only (§2.3, §4.1)."""
    if subject.is_star_delta and subject.dtype.name not in STAR_DELTA_DTYPES:
        yield "chronozarr.temporal.encoding", f"is star-delta: expected none for {subject.dtype.name} data"


@rule("§4.1", Subject)
def selection_has_its_members(subject: Subject) -> Found:
    """``selection`` has mode, sampled_cells and ratio (§4.1)."""
    if "selection" in subject.temporal:
        yield from problems(members.SELECTION, subject.temporal["selection"], "chronozarr.temporal.selection")


def _selection(subject: Subject, name: str) -> Any:
    return members.SELECTION[name].of(members.as_object(subject.temporal.get("selection")))


@rule("§4.3", Subject)
def selection_is_what_was_chosen(subject: Subject) -> Found:
    """star-delta is kept only at a ratio of at most 0.85 (§4.3)."""
    ratio, star_delta = _selection(subject, "ratio"), subject.is_star_delta
    if (ratio <= STAR_DELTA_RATIO) != star_delta:
        encoding = "star-delta" if star_delta else "none"
        yield (
            "chronozarr.temporal.selection.ratio",
            f"is {ratio}, and the encoding is {encoding}: expected star-delta up to {STAR_DELTA_RATIO}, else none",
        )


@rule("§4.3", Subject)
def selection_sampled_enough_cells(subject: Subject) -> Found:
    """At least 3 cells are sampled, or all where there are fewer (§4.3)."""
    found, (rows, cols) = _selection(subject, "sampled_cells"), subject.cells(0)
    if not min(SAMPLED_CELLS, rows * cols) <= found <= rows * cols:
        yield (
            "chronozarr.temporal.selection.sampled_cells",
            f"is {found}: expected at least {SAMPLED_CELLS}, or all where there are fewer, of {rows * cols} cells",
        )


@rule("§4.3", Subject)
def selection_is_for_unsigned_integers(subject: Subject) -> Found:
    """int16 and float32 stores have no selection (§4.3)."""
    if "selection" in subject.temporal and subject.dtype.name not in STAR_DELTA_DTYPES:
        yield "chronozarr.temporal.selection", f"is there: expected none for {subject.dtype.name} data"
