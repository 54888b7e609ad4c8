"""The store under examination: its documents, and what they say where they say it well.

Facts that several documents state are taken as most of them have them, so that one wrong document is one finding. A
fact that is broken or absent raises :class:`UnknownError`, which skips the rules that need it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from chronozarr_core.chunks import ChunkFormat, Compression, decode_strings
from chronozarr_core.dtypes import DTYPES, Nodata, check_nodata, fill_value
from chronozarr_core.errors import ChronozarrError, CorruptStoreError
from chronozarr_core.grid import RasterGrid, Transform
from chronozarr_core.instants import parse_instant
from chronozarr_core.json_values import is_number
from chronozarr_core.layout import node_key
from chronozarr_core.model import Json
from chronozarr_core.storage import Storage, StorageError, read_json
from chronozarr_core.temporal import anchor_indices
from chronozarr_core.validate.members import (
    ARRAY,
    BLOCK,
    DATASET,
    GROUP,
    LEVEL,
    STAR_DELTA,
    as_object,
    compressor_problems,
    well_formed,
)
from chronozarr_core.validate.rules import UnknownError

PLANES = ("mask", "coverage")
COORDINATES = ("time", "band", "y", "x")
LARGEST_CHUNK = 2**31 - 1
"""Bytes of the largest chunk that every codec of §8 holds."""

_A = TypeVar("_A")
_T = TypeVar("_T")
_H = TypeVar("_H", bound=Hashable)


@dataclass(frozen=True)
class Role:
    """What the specification says of one kind of array: section, dimensions, data types."""

    section: str
    dims: tuple[str, ...]
    data_types: tuple[str, ...]


ROLES = {
    "data": Role("§2.1", ("time", "band", "y", "x"), DTYPES),
    "mask": Role("§2.4", ("time", "y", "x"), ("uint8",)),
    "coverage": Role("§2.5", ("time", "y", "x"), ("uint8",)),
    "time": Role("§2.2", ("time",), ("int64",)),
    "band": Role("§2.2", ("band",), ("string", "int32")),
    "y": Role("§2.2", ("y",), ("float64",)),
    "x": Role("§2.2", ("x",), ("float64",)),
    "volatility": Role("§5", ("row", "col"), ("float32",)),
}


def each(fact: Callable[[_A], _T], things: Iterable[_A]) -> Iterator[_T]:
    """The fact of each thing of which it is known."""
    for thing in things:
        try:
            value = fact(thing)
        except UnknownError:
            continue
        yield value


def agreed(values: Iterable[_H]) -> _H:
    """What most documents say; the first of those that are as many."""
    counts = Counter(values).most_common(1)
    if not counts:
        raise UnknownError("no document says it")
    return counts[0][0]


def ordered(paths: list[str]) -> bool:
    """Whether levels are listed as "0", "1", ... (§3.4)."""
    return bool(paths) and paths == [str(level) for level in range(len(paths))]


class Subject:
    """A store, as its root document describes it."""

    def __init__(self, storage: Storage, root: Json) -> None:
        self.storage = storage
        self.root = root
        self._documents: dict[str, Json | str] = {}
        self._values: dict[str, NDArray[Any]] = {}

    def problem(self, path: str) -> str | None:
        """Why the metadata document of a node cannot be read; None where it can."""
        found = self._load(path)
        return found if isinstance(found, str) else None

    def document(self, path: str) -> Json:
        """The metadata document of a node, from its own ``zarr.json``."""
        return as_object(self._load(path))

    def _load(self, path: str) -> Json | str:
        if path not in self._documents:
            try:
                document: Json | str = read_json(self.storage, node_key(path)) or "is missing"
            except (CorruptStoreError, StorageError, RecursionError) as error:
                document = f"cannot be read: {error}"
            self._documents[path] = document
        return self._documents[path]

    @property
    def attributes(self) -> Json:
        return as_object(self.root.get("attributes"))

    @property
    def block(self) -> Json:
        """The ``chronozarr`` block (§3.2)."""
        return as_object(self.attributes.get("chronozarr"))

    def member(self, name: str) -> Any:
        """A member of the block."""
        return BLOCK[name].of(self.block)

    @cached_property
    def is_v01(self) -> bool:
        return bool(self.member("spec_version").startswith("0.1."))

    @cached_property
    def instants(self) -> NDArray[np.int64]:
        """``chronozarr.times`` as milliseconds since the epoch."""
        return np.array([milliseconds(text) for text in self.member("times")], np.int64)

    @cached_property
    def band_names(self) -> tuple[str, ...]:
        """Names of ``chronozarr.bands``, of either form (§3.2)."""
        names = [band if isinstance(band, str) else band.get("name") for band in self.member("bands")]
        if not all(isinstance(name, str) for name in names):
            raise UnknownError("a band has no name")
        return tuple(names)

    @cached_property
    def multiscale(self) -> Json:
        """The one ``multiscales`` entry (§3.4)."""
        entries = self.attributes.get("multiscales")
        if not isinstance(entries, list) or len(entries) != 1:
            raise UnknownError("multiscales has not one entry")
        return as_object(entries[0])

    @cached_property
    def datasets(self) -> list[Json]:
        return list(well_formed(DATASET, self.multiscale.get("datasets")))

    @cached_property
    def mirrors(self) -> list[Json]:
        """Entries of ``chronozarr.levels`` (§3.7)."""
        return list(well_formed(LEVEL, self.member("levels")))

    @cached_property
    def level_paths(self) -> list[str]:
        """Names of the level groups, from the first list of them that is in order."""
        lists = (*each(lambda subject: subject.datasets, [self]), *each(lambda subject: subject.mirrors, [self]))
        listed = [paths for paths in ([entry["path"] for entry in entries] for entries in lists) if ordered(paths)]
        if not listed:
            raise UnknownError("the levels are listed in order nowhere")
        return listed[0]

    @cached_property
    def variable(self) -> str:
        return str(self.member("variable")) if "variable" in self.block else "data"

    @cached_property
    def volatility_path(self) -> str:
        return str(self.member("volatility_path")) if "volatility_path" in self.block else "volatility"

    @cached_property
    def planes(self) -> tuple[str, ...]:
        """The planes that the block names."""
        return tuple(name for name in PLANES if self.block.get(f"{name}_variable") == name)

    @cached_property
    def nodata(self) -> Nodata:
        """A number of the data type, or None."""
        try:
            return check_nodata(self.member("nodata"), self.dtype)
        except ChronozarrError as error:
            raise UnknownError(str(error)) from None

    @cached_property
    def groups(self) -> list[LevelGroup]:
        """The level groups whose document can be read."""
        return [LevelGroup(self, path, level) for level, path in enumerate(self.level_paths) if not self.problem(path)]

    def places(self) -> Iterator[tuple[str, str, int]]:
        """Path, role and level of every array that the block and the levels ask for (§2)."""
        variables = list(each(lambda subject: subject.variable, [self]))
        for paths in each(lambda subject: subject.level_paths, [self]):
            for level, path in enumerate(paths):
                yield from ((f"{path}/{variable}", "data", level) for variable in variables)
                yield from ((f"{path}/{name}", name, level) for name in (*self.planes, *COORDINATES))
        for path in each(lambda subject: subject.volatility_path, [self]):
            yield path, "volatility", 0

    @cached_property
    def arrays(self) -> list[ArrayNode]:
        """The arrays whose document can be read."""
        return [ArrayNode(self, path, role, level) for path, role, level in self.places() if not self.problem(path)]

    def of_role(self, *roles: str) -> list[ArrayNode]:
        return [array for array in self.arrays if array.role in roles]

    @cached_property
    def n_time(self) -> int:
        lengths = each(lambda array: array.shape[0], self.of_role("data", *PLANES, "time"))
        return agreed([*lengths, *each(lambda subject: len(subject.member("times")), [self])])

    @cached_property
    def n_band(self) -> int:
        lengths = each(lambda array: array.shape[-3 if array.role == "data" else 0], self.of_role("data", "band"))
        return agreed([*lengths, *each(lambda subject: len(subject.member("bands")), [self])])

    def size(self, level: int) -> tuple[int, int]:
        """Height and width of a level: ceil(H_0 / 2**level), ceil(W_0 / 2**level) (§6)."""
        height, width = self._size
        return -(-height >> level), -(-width >> level)

    @cached_property
    def _size(self) -> tuple[int, int]:
        return self._length("y"), self._length("x")

    def _length(self, dim: str) -> int:
        """Height or width of level 0, as most arrays have it."""
        axis = {"y": -2, "x": -1}[dim]
        arrays = [array for array in self.of_role("data", *PLANES) if array.level == 0]
        coordinates = [array for array in self.of_role(dim) if array.level == 0]
        lengths = (*each(lambda array: array.shape[axis], arrays), *each(lambda array: array.shape[0], coordinates))
        return agreed([*lengths, *each(lambda subject: int(subject.mirrors[0]["shape"][axis]), [self])])

    @cached_property
    def chunk_size(self) -> int:
        """``cs``: the edge of a cell (§2.1)."""
        return agreed(each(lambda array: array.chunk_shape[2], self.of_role("data")))

    def cells(self, level: int) -> tuple[int, int]:
        """Rows and columns of cells of a level (§2.1)."""
        height, width = self.size(level)
        return -(-height // self.chunk_size), -(-width // self.chunk_size)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The data's."""
        name = agreed(each(lambda array: array.data_type, self.of_role("data")))
        if name not in DTYPES:
            raise UnknownError(f"{name} is none of {DTYPES}")
        return np.dtype(name)

    @cached_property
    def compression(self) -> Compression:
        """The codec of ``data``, ``mask`` and ``coverage`` (§8)."""
        return agreed(each(lambda array: array.compression, self.of_role("data", *PLANES)))

    @cached_property
    def is_sharded(self) -> bool:
        return any(each(lambda array: array.is_sharded, self.arrays))

    @cached_property
    def crs(self) -> str:
        stated = each(lambda subject: str(subject.member("crs")), [self])
        entries = each(lambda subject: subject.datasets, [self])
        groups = each(lambda group: str(group.member("crs")), self.groups)
        return agreed([*stated, *groups, *(str(dataset["crs"]) for listed in entries for dataset in listed)])

    @cached_property
    def _transform(self) -> Transform:
        """Level 0's, as most levels have it."""
        groups = each(lambda group: scaled(group.member("transform"), -group.level), self.groups)
        mirrors = [mirror for listed in each(lambda subject: subject.mirrors, [self]) for mirror in listed]
        return agreed([*groups, *(scaled(mirror["transform"], -k) for k, mirror in enumerate(mirrors))])

    def transform(self, level: int) -> Transform:
        """Of a level: level 0's with pixels ``2**level`` times as large, the origin preserved (§3.3)."""
        return scaled(self._transform, level)

    def grid(self, level: int) -> RasterGrid:
        """Where the pixels of a level lie."""
        try:
            return RasterGrid(self.crs, self.transform(level), *self.size(level))
        except UnknownError:
            raise
        except ChronozarrError as error:
            raise UnknownError(str(error)) from None

    def coordinate(self, array: ArrayNode) -> NDArray[Any]:
        """The values of a coordinate or the volatility; kept, since several rules need them."""
        if array.path not in self._values:
            try:
                self._values[array.path] = array.values()
            except CorruptStoreError as error:
                raise UnknownError(str(error)) from None
        return self._values[array.path]

    @cached_property
    def agreed_instants(self) -> NDArray[np.int64]:
        """Milliseconds since the epoch of each timestep."""
        arrays = each(lambda array: tuple(self.coordinate(array).tolist()), self.of_role("time"))
        stated = each(lambda subject: tuple(subject.instants.tolist()), [self])
        return np.array(agreed(times for times in (*arrays, *stated) if len(times) == self.n_time), np.int64)

    @cached_property
    def agreed_names(self) -> tuple[str, ...]:
        """Names of the bands."""
        listed = each(lambda subject: tuple(subject.member("band_names")), [self])
        objects = each(lambda subject: subject.band_names, [self])
        arrays = [array for array in self.of_role("band") if array.document.get("data_type") == "string"]
        coordinates = each(lambda array: tuple(self.coordinate(array).tolist()), arrays)
        return agreed(names for names in (*objects, *listed, *coordinates) if len(names) == self.n_band)

    @cached_property
    def temporal(self) -> Json:
        """The ``temporal`` block (§4.1)."""
        return as_object(self.member("temporal"))

    @cached_property
    def is_star_delta(self) -> bool:
        encoding = self.temporal.get("encoding", "star-delta" if self.is_v01 else None)
        if encoding not in ("none", "star-delta"):
            raise UnknownError("the temporal encoding is unknown")
        return bool(encoding == "star-delta")

    @cached_property
    def anchor_interval(self) -> int:
        return int(STAR_DELTA["anchor_interval"].of(self.temporal))

    @cached_property
    def anchors(self) -> tuple[int, ...]:
        """The anchors that follow from the interval (§4.2.1)."""
        return anchor_indices(self.n_time, self.anchor_interval)

    @cached_property
    def references(self) -> dict[int, int]:
        """The recorded references: none where the data array holds true values."""
        if not self.is_star_delta:
            return {}
        return {int(t): anchor for t, anchor in STAR_DELTA["delta_reference"].of(self.temporal).items()}

    def data_format(self, path: str) -> ChunkFormat:
        """The chunks of a data array, as most of them are."""
        shape = (1, self.n_band, self.chunk_size, self.chunk_size)
        return ChunkFormat(shape, self.dtype, fill_value(self.nodata, self.dtype), self.compression, path)

    def plane_format(self, path: str) -> ChunkFormat:
        """The chunks of a mask or coverage array."""
        return ChunkFormat((1, self.chunk_size, self.chunk_size), np.dtype(np.uint8), 0, self.compression, path)


def milliseconds(text: str) -> int:
    """An ISO-8601 time as milliseconds since the epoch."""
    try:
        return int(parse_instant(text).astype(np.int64))
    except UnknownError:
        raise
    except ChronozarrError as error:
        raise UnknownError(str(error)) from None


def scaled(transform: Iterable[float], levels: int) -> Transform:
    """A transform of pixels ``2**levels`` times as large; exact, since only exponents change (§3.3)."""
    a, b, c, d, e, f = transform
    return _ldexp(a, levels), b, c, d, _ldexp(e, levels), f


def _ldexp(value: float, exponent: int) -> float:
    try:
        return math.ldexp(value, exponent)
    except OverflowError:
        return math.inf


@dataclass(frozen=True)
class LevelGroup:
    """A level's group and its document (§3.3)."""

    subject: Subject
    path: str
    level: int

    @property
    def key(self) -> str:
        return node_key(self.path)

    @property
    def document(self) -> Json:
        return self.subject.document(self.path)

    def member(self, name: str) -> Any:
        """An attribute."""
        return GROUP[name].of(as_object(self.document.get("attributes")))


@dataclass(frozen=True)
class ArrayNode:
    """An array and its document."""

    subject: Subject
    path: str
    role: str
    level: int

    @property
    def key(self) -> str:
        return node_key(self.path)

    @property
    def section(self) -> str:
        """The section that says what the array is."""
        return ROLES[self.role].section

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the dimensions it must have."""
        return ROLES[self.role].dims

    @property
    def document(self) -> Json:
        return self.subject.document(self.path)

    def member(self, name: str) -> Any:
        return ARRAY[name].of(self.document)

    @property
    def attributes(self) -> Json:
        return as_object(self.document.get("attributes"))

    def lengths(self, found: list[int]) -> tuple[int, ...]:
        """One length per dimension."""
        if len(found) != len(self.dims):
            raise UnknownError(f"{self.path} has {len(found)} dimensions")
        return tuple(found)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.lengths(self.member("shape"))

    @property
    def data_type(self) -> str:
        return str(self.member("data_type"))

    @property
    def is_sharded(self) -> bool:
        return bool(self.member("codecs")[0]["name"] == "sharding_indexed")

    @property
    def chunk_shape(self) -> tuple[int, ...]:
        """Of an unsharded array."""
        if self.is_sharded:
            raise UnknownError(f"{self.path} is sharded")
        return self.lengths(self.member("chunk_grid")["configuration"]["chunk_shape"])

    @property
    def compression(self) -> Compression:
        """The last codec of an unsharded array."""
        codec = self.member("codecs")[-1]
        if any(compressor_problems(codec)):
            raise UnknownError(f"{self.path} has a codec that is not permitted")
        return Compression.from_json(codec, self.path)

    @property
    def expected_shape(self) -> tuple[int, ...]:
        """What the metadata of the rest of the store ask for."""
        subject, (height, width) = self.subject, self.subject.size(self.level)
        if self.role == "volatility":
            return subject.cells(0)
        lengths = {"time": subject.n_time, "band": subject.n_band, "y": height, "x": width}
        return tuple(lengths[name] for name in self.dims)

    @property
    def is_readable(self) -> bool:
        """Whether its values can be read whole: a coordinate or the volatility, as it is expected."""
        return (
            self.role not in ("data", *PLANES)
            and self.shape == self.expected_shape
            and self.data_type in ROLES[self.role].data_types
            and len(self.member("codecs")) == 2
            and math.prod(self.chunk_shape) * 8 <= LARGEST_CHUNK
        )

    def values(self) -> NDArray[Any]:
        """Everything a coordinate or the volatility holds; raises :class:`UnknownError` where its document is wrong.

        Raises
        ------
        CorruptStoreError
            An object cannot be read, or does not decode.
        """
        if not self.is_readable:
            raise UnknownError(f"{self.path} is not as expected")
        shape, chunk_shape = self.shape, self.chunk_shape
        out = np.empty(shape, object if self.data_type == "string" else self.data_type)
        for place in np.ndindex(*(-(-length // size) for length, size in zip(shape, chunk_shape, strict=True))):
            part = tuple(slice(n * size, (n + 1) * size) for n, size in zip(place, chunk_shape, strict=True))
            out[part] = self._chunk(place)[tuple(slice(0, length) for length in out[part].shape)]
        return out

    def _chunk(self, place: tuple[int, ...]) -> NDArray[Any]:
        key = "/".join([self.path, "c", *map(str, place)])
        try:
            encoded = self.subject.storage.get(key)
        except StorageError as error:
            raise CorruptStoreError(str(error)) from None
        if self.data_type == "string":
            return self._strings(encoded, key)
        fill = self.member("fill_value")
        number = fill if is_number(fill) else math.nan if self.data_type.startswith("float") else 0
        return ChunkFormat(self.chunk_shape, np.dtype(self.data_type), number, self.compression, key).decode(
            encoded, key
        )

    def _strings(self, encoded: bytes | None, key: str) -> NDArray[Any]:
        names = [""] * self.chunk_shape[0] if encoded is None else decode_strings(encoded, self.compression, key)
        if len(names) != self.chunk_shape[0]:
            raise CorruptStoreError(f"{key}: the chunk holds {len(names)} strings, expected {self.chunk_shape[0]}")
        return np.array(names, object)
