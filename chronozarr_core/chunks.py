"""A chunk's bytes: the codec chain of §8 through numcodecs, and nothing of what the values mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numcodecs
import numpy as np
from numcodecs.abc import Codec as NumCodec
from numpy.typing import NDArray

from chronozarr_core.errors import ChronozarrError, CorruptStoreError, UnsupportedStoreError

BLOSC_CNAMES = ("zstd", "lz4")
BLOSC_SHUFFLES = {"noshuffle": 0, "shuffle": 1}
CODECS = ("zstd", "gzip", "blosc", *(f"blosc-{c}-{s}" for c in BLOSC_CNAMES for s in BLOSC_SHUFFLES))
DEFAULT_LEVELS = {"zstd": 5, "gzip": 6, "blosc": 1}
LEVELS = {"zstd": (1, 22), "gzip": (1, 9), "blosc": (0, 9)}

_UNTOUCHED = 0xA5


@dataclass(frozen=True)
class Compression:
    """One compression codec of §8 with its configuration; ``cname`` and ``shuffle`` are blosc's."""

    name: str = "zstd"
    level: int = 5
    cname: str = "zstd"
    shuffle: str = "shuffle"

    @classmethod
    def parse(cls, codec: str, level: int | None = None) -> Compression:
        """The codec a user names: ``zstd``, ``gzip``, ``blosc`` or ``blosc-<cname>-<shuffle>``.

        Raises
        ------
        ChronozarrError
            The codec or its level is not one that §8 permits.
        """
        if codec not in CODECS:
            raise ChronozarrError(f"codec {codec!r} is not permitted (§8): expected one of {', '.join(CODECS)}")
        name, *variant = codec.split("-")
        low, high = LEVELS[name]
        chosen = DEFAULT_LEVELS[name] if level is None else level
        if int(chosen) != chosen or not low <= chosen <= high:
            raise ChronozarrError(f"{name} level {chosen} is out of range: expected an integer from {low} to {high}")
        return cls(name, int(chosen), *variant)

    @classmethod
    def from_json(cls, document: Mapping[str, Any], where: str) -> Compression:
        """Read an entry of a ``codecs`` list.

        Raises
        ------
        UnsupportedStoreError
            It is not one of the three codecs, or a blosc variant that §8 excludes; ``where`` names the array.
        """
        name, configuration = document.get("name"), document.get("configuration", {})
        if name == "zstd":
            return cls(name, configuration.get("level", 0))
        if name == "gzip":
            return cls(name, configuration.get("level", 1))
        if name != "blosc":
            raise UnsupportedStoreError(f"{where}: codec {name!r} is not supported: expected zstd, blosc or gzip (§8)")
        cname, shuffle = configuration.get("cname"), configuration.get("shuffle")
        if cname not in BLOSC_CNAMES or shuffle not in BLOSC_SHUFFLES:
            raise UnsupportedStoreError(
                f"{where}: blosc with cname {cname!r} and shuffle {shuffle!r} is not supported: "
                "expected zstd or lz4, shuffle or noshuffle (§8)"
            )
        return cls(name, configuration.get("clevel", 1), cname, shuffle)

    def to_json(self, itemsize: int) -> dict[str, Any]:
        """The entry of a ``codecs`` list for elements of ``itemsize`` bytes."""
        if self.name == "zstd":
            configuration: dict[str, Any] = {"level": self.level, "checksum": False}
        elif self.name == "gzip":
            configuration = {"level": self.level}
        else:
            configuration = {
                "typesize": itemsize,
                "cname": self.cname,
                "clevel": self.level,
                "shuffle": self.shuffle,
                "blocksize": 0,
            }
        return {"name": self.name, "configuration": configuration}

    def codec(self) -> NumCodec:
        """The numcodecs codec; safe to share between threads, and releases the GIL."""
        if self.name == "zstd":
            return numcodecs.Zstd(level=self.level)
        if self.name == "gzip":
            return numcodecs.GZip(level=self.level)
        return numcodecs.Blosc(cname=self.cname, clevel=self.level, shuffle=BLOSC_SHUFFLES[self.shuffle], blocksize=0)


@dataclass(frozen=True)
class ChunkFormat:
    """What the chunks of one array look like: shape, data type, fill value and codec."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fill_value: int | float
    compression: Compression
    key: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "_codec", self.compression.codec())
        object.__setattr__(self, "_stored", self.dtype.newbyteorder("<"))

    @property
    def nbytes(self) -> int:
        """Bytes of one decoded chunk."""
        return int(np.prod(self.shape)) * self.dtype.itemsize

    def encode(self, chunk: NDArray[Any]) -> bytes | None:
        """The object that holds a full chunk, or None where it is all fill and so not written (§2.1, §7.2)."""
        if self.is_fill(chunk):
            return None
        return bytes(self._codec.encode(np.ascontiguousarray(chunk, self._stored)))  # type: ignore[attr-defined]

    def is_fill(self, chunk: NDArray[Any]) -> bool:
        """Whether every element is the fill value, bit for bit: -0.0 is not 0.0."""
        bits = np.dtype(f"u{self.dtype.itemsize}")
        fill = np.array(self.fill_value, self.dtype).view(bits)
        flat = chunk.reshape(-1).view(bits)
        return bool(flat[0] == fill and (flat == fill).all())

    def empty(self) -> NDArray[Any]:
        """A buffer for one decoded chunk."""
        return np.empty(self.shape, self._stored)  # type: ignore[attr-defined]

    def decode(self, encoded: bytes | None, key: str, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """The chunk that an object holds; all fill where there is no object.

        ``out``, a buffer from :meth:`empty`, is decoded into and returned, which saves an allocation of a whole chunk.

        Raises
        ------
        CorruptStoreError
            The object does not decompress, or not to the size of a chunk; ``key`` names it.
        """
        if encoded is None:
            return np.broadcast_to(np.array(self.fill_value, self.dtype), self.shape)
        chunk = self.empty() if out is None else out
        last = chunk.reshape(-1)[-1:].view(np.uint8)
        last[:] = _UNTOUCHED
        if self.compression.name == "blosc" and int.from_bytes(encoded[12:16], "little") != len(encoded):
            # Blosc believes its header, and would read past the end of a torn chunk.
            raise CorruptStoreError(f"{key}: the chunk has {len(encoded)} bytes, and not those its blosc header says")
        try:
            self._codec.decode(encoded, chunk)  # type: ignore[attr-defined]
            # Codecs fill a buffer that is too large in part, and say nothing: look again where the end is untouched.
            short = (last == _UNTOUCHED).all() and len(memoryview(self._codec.decode(encoded))) != self.nbytes  # type: ignore[attr-defined]
        except (RuntimeError, ValueError, OSError, EOFError) as error:
            raise CorruptStoreError(f"{key}: the chunk does not decode as {self.compression.name}: {error}") from None
        if short:
            raise CorruptStoreError(f"{key}: the chunk holds fewer than the {self.nbytes} bytes of {self.shape}")
        return chunk


def codecs_json(dtype: np.dtype[Any], compression: Compression) -> list[dict[str, Any]]:
    """The ``codecs`` list of an array: ``bytes`` little-endian, then one compression codec (§8)."""
    return [{"name": "bytes", "configuration": {"endian": "little"}}, compression.to_json(dtype.itemsize)]


def parse_codecs(codecs: Sequence[Mapping[str, Any]], dtype: np.dtype[Any], where: str) -> Compression:
    """The compression of a ``codecs`` list of an unsharded array.

    Raises
    ------
    UnsupportedStoreError
        The list is not ``bytes`` little-endian followed by one codec of §8.
    """
    names = [codec.get("name") for codec in codecs]
    if names[:1] == ["sharding_indexed"]:
        raise UnsupportedStoreError(f"{where}: sharded arrays (§7) are not read by this version")
    if len(names) != 2 or names[0] != "bytes":
        raise UnsupportedStoreError(f"{where}: codecs are {names}: expected bytes and one of zstd, blosc, gzip (§8)")
    endian = codecs[0].get("configuration", {}).get("endian")
    if endian != "little" and dtype.itemsize > 1:
        raise UnsupportedStoreError(f"{where}: bytes codec with endian {endian!r}: expected 'little' (§8)")
    return Compression.from_json(codecs[1], where)


def encode_strings(names: Sequence[str], compression: Compression) -> bytes:
    """The single chunk of a ``string`` array: vlen-utf8, then the compression codec (§2.2)."""
    packed = numcodecs.VLenUTF8().encode(np.array(list(names), dtype=object))
    return bytes(compression.codec().encode(packed))


def decode_strings(encoded: bytes, compression: Compression, key: str) -> list[str]:
    """The strings of a single-chunk ``string`` array.

    Raises
    ------
    CorruptStoreError
        The object does not decode; ``key`` names it.
    """
    try:
        return [str(name) for name in numcodecs.VLenUTF8().decode(compression.codec().decode(encoded))]
    except (RuntimeError, ValueError, OSError, EOFError) as error:
        raise CorruptStoreError(f"{key}: the chunk does not decode as vlen-utf8 strings: {error}") from None
