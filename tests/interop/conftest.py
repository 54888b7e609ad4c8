"""The peer, for every test of this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT, missing
from tests.interop.peer import Peer


@pytest.fixture(scope="session")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    """The published package at work; ``CHRONOZARR_PEER`` may name another environment's Python."""
    python = Path(os.environ.get("CHRONOZARR_PEER", ROOT / ".venv-peer" / "bin" / "python"))
    if not python.is_file():
        missing(f"the peer's Python ({python})", "script/bootstrap makes it")
    worker = Peer(python, tmp_path_factory.mktemp("peer"))
    yield worker
    worker.close()
