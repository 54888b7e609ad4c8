"""The published package of the format's authors, as an independent reader, writer and validator.

It lives in an environment of its own and is used through its command line and its documented interface alone.
"""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

WORKER = Path(__file__).with_name("peer_worker.py")


class PeerError(Exception):
    """The package raised; the text is its own."""


class Peer:
    """One long-lived process of the peer's Python; arrays travel as .npy files in ``scratch``."""

    def __init__(self, python: Path, scratch: Path) -> None:
        self._cli = python.with_name("chronozarr")
        self._scratch = scratch
        self._names = itertools.count()
        self._process = subprocess.Popen(
            [python, "-W", "ignore", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def close(self) -> None:
        """End the process, which ends with its input."""
        self._process.communicate()

    def validate(self, store: Path) -> tuple[bool, str]:
        """What its command ``validate`` says: whether the store conforms, and the text."""
        done = subprocess.run([self._cli, "validate", store], capture_output=True, text=True, check=False)
        return done.returncode == 0, done.stdout + done.stderr

    def problems(self, store: Path) -> list[str]:
        """What its function ``validate`` finds; faster than the command."""
        return list(self._ask("validate", store=str(store)))

    def info(self, store: Path) -> dict[str, Any]:
        """``times``, ``bands`` (names), ``levels`` (count), ``nodata`` and ``dtype``."""
        return dict(self._ask("info", store=str(store)))

    def read(self, store: Path, t: int, lod: int = 0) -> NDArray[Any]:
        """Values of one timestep, shape (band, y, x)."""
        return np.asarray(self._read(store, t, lod, "read"))

    def physical(self, store: Path, t: int, lod: int = 0) -> NDArray[np.floating]:
        """Values of one timestep as stored * scale + offset, NaN where invalid."""
        return np.asarray(self._read(store, t, lod, "physical"))

    def read_mask(self, store: Path, t: int, lod: int = 0) -> NDArray[np.uint8] | None:
        """Validity of one timestep, shape (y, x)."""
        return self._read(store, t, lod, "read_mask")

    def read_coverage(self, store: Path, t: int, lod: int = 0) -> NDArray[np.uint8] | None:
        """Numbers of observations of one timestep, shape (y, x)."""
        return self._read(store, t, lod, "read_coverage")

    def read_all(self, store: Path) -> list[dict[str, NDArray[Any]]]:
        """``data``, and ``mask`` and ``coverage`` where there are any, of every level; time is the first axis."""
        out = self._path() + ".npz"
        levels = range(self._ask("read_all", store=str(store), out=out))
        with np.load(out) as found:
            arrays = {key: found[key] for key in found.files}
        return [
            {key.split("/")[1]: values for key, values in arrays.items() if key.startswith(f"{lod}/")} for lod in levels
        ]

    def encode(
        self,
        data: NDArray[Any],
        out: Path,
        *,
        times: NDArray[np.datetime64],
        bands: Sequence[str | dict[str, Any]],
        transform: Sequence[float],
        **options: Any,
    ) -> dict[str, Any]:
        """Write a store; ``options`` are its own keywords. Returns ``encoding`` and the count of ``levels``."""
        planes = {name: self._saved(options.pop(name)) for name in ("mask", "coverage") if name in options}
        grid = {"times": [str(time) for time in times], "bands": list(bands), "transform": list(transform)}
        return dict(self._ask("encode", data=self._saved(data), out=str(out), **grid, **planes, **options))

    def _read(self, store: Path, t: int, lod: int, what: str) -> Any:
        out = self._path()
        found = self._ask("read", store=str(store), t=t, lod=lod, out=out, what=what)
        return np.load(out) if found else None

    def _saved(self, values: NDArray[Any]) -> str:
        path = self._path()
        np.save(path, values)
        return path

    def _path(self) -> str:
        return str(self._scratch / f"{next(self._names)}.npy")

    def _ask(self, do: str, **arguments: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, "with": arguments}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise PeerError(f"the peer's process ended with status {self._process.wait()} at {do} {arguments}")
        answer = json.loads(line)
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer["result"]
