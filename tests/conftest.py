"""What every folder of tests shares: real rasters, components that must be there, Hypothesis profiles."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

REQUIRE_ALL = "CHRONOZARR_REQUIRE_ALL"
ROOT = Path(__file__).resolve().parent.parent

settings.register_profile("local", deadline=None)
settings.register_profile(
    "ci", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci" if os.environ.get(REQUIRE_ALL) else "local")


def missing(component: str, remedy: str) -> None:
    """Skip the test visibly; where everything was asked for, fail it."""
    text = f"{component} is missing: {remedy}"
    if os.environ.get(REQUIRE_ALL):
        pytest.fail(text, pytrace=False)
    pytest.skip(text, allow_module_level=True)


def require(module: str) -> ModuleType:
    """The named module, or what :func:`missing` does."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing(module, f"script/bootstrap installs it ({error})")
        raise


@pytest.fixture(scope="session")
def realdata() -> Path:
    """Folder of real rasters beside the checkout, or ``CHRONOZARR_REALDATA``; it may be absent."""
    named = os.environ.get("CHRONOZARR_REALDATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "realdata"
    if not folder.is_dir():
        if named:
            pytest.fail(f"CHRONOZARR_REALDATA names {folder}, which is no folder", pytrace=False)
        pytest.skip("no real rasters at ../shared/realdata; CHRONOZARR_REALDATA may name their folder")
    return folder
