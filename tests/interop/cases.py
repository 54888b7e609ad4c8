"""The stores that both directions are tried with, and comparing what was read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chronozarr_core import ChronoStore
from tests.core.builders import drifting, noise, planes, same_bits

SHAPE = (5, 2, 37, 51)
ENCODINGS = {
    "uint8": ("none", "star-delta"),
    "uint16": ("none", "star-delta"),
    "int16": ("none",),
    "float32": ("none",),
}
NODATA: dict[str, tuple[float | None, ...]] = {
    "uint8": (0, 7, 255, None),
    "uint16": (0, 300, 65535, None),
    "int16": (0, -32768, 32767, None),
    "float32": (0.0, -9999.0, -3.4028234663852886e38, None),
}
KINDS = [(dtype, encoding) for dtype, encodings in ENCODINGS.items() for encoding in encodings]
PLANES: tuple[tuple[str, ...], ...] = ((), ("mask",), ("coverage",), ("mask", "coverage"))
SHAPES = ((1, 1, 1, 1), (1, 3, 17, 16), (2, 1, 16, 33), (9, 4, 3, 1), (13, 1, 70, 65))


@dataclass(frozen=True)
class Case:
    """One store to write; its name tells pytest what is in it."""

    dtype: str
    encoding: str
    nodata: float | None = None
    extra: tuple[str, ...] = ()
    codec: str = "zstd"
    shape: tuple[int, int, int, int] = SHAPE

    def __str__(self) -> str:
        size = "x".join(map(str, self.shape))
        return "-".join([self.dtype, self.encoding, f"nodata={self.nodata}", *self.extra, self.codec, size])

    def data(self) -> NDArray[Any]:
        """Noise that drifts where star-delta is to pay, with scattered and one whole block of nodata."""
        make = drifting if self.encoding == "star-delta" else noise
        data = make(self.shape, self.dtype)
        if self.nodata is not None:
            data[planes(self.shape, 3)[:, None].repeat(self.shape[1], 1) == 0] = self.nodata
            data[-1, :, :20, :20] = self.nodata
        return data

    def planes(self) -> dict[str, NDArray[np.uint8]]:
        """The mask, coverage or both."""
        highs = {"mask": 1, "coverage": 255}
        return {name: planes(self.shape, highs[name], seed=len(name)) for name in self.extra}


def matrix(codecs: tuple[str, ...]) -> list[Case]:
    """Every dtype and encoding with every plane and codec, every nodata, and odd shapes."""
    cases = []
    for dtype, encoding in KINDS:
        cases += [Case(dtype, encoding, NODATA[dtype][0], extra, codec) for extra in PLANES for codec in codecs]
        cases += [Case(dtype, encoding, nodata) for nodata in NODATA[dtype][1:]]
        cases += [Case(dtype, encoding, shape=shape) for shape in SHAPES]
    return cases


def read_all(store: ChronoStore) -> list[dict[str, NDArray[Any]]]:
    """Every level as our reader gives it: ``data``, ``mask`` and ``coverage``; time comes first in the shapes."""
    methods = {"data": store.read, "mask": store.read_mask, "coverage": store.read_coverage}
    return [
        {
            name: np.stack([np.asarray(method(t, lod)) for t in range(len(store.times))])
            for name, method in methods.items()
            if name == "data" or getattr(store, f"has_{name}")
        }
        for lod in range(len(store.levels))
    ]


def differences(ours: list[dict[str, NDArray[Any]]], theirs: list[dict[str, NDArray[Any]]]) -> list[str]:
    """Which arrays of which levels are not there twice, or differ in any bit."""
    found = [] if len(ours) == len(theirs) else [f"{len(ours)} levels and {len(theirs)}"]
    for lod, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        found += [f"{lod}/{name}" for name in sorted(one.keys() | other.keys()) if not _same(one, other, name)]
    return found


def _same(one: dict[str, NDArray[Any]], other: dict[str, NDArray[Any]], name: str) -> bool:
    return name in one and name in other and same_bits(one[name], other[name])
