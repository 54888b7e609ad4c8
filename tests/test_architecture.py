"""The shape that the design lays down, read from the source."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("chronozarr_core", "gdal_tools")
FORBIDDEN = {
    "chronozarr_core": {"gdal_tools", "qgis_plugin", "rasterio", "osgeo", "qgis", "click", "tqdm", "PIL", "zarr"},
    "gdal_tools": {"qgis_plugin", "qgis", "zarr"},
}
BINDINGS = {"rasterio": "gdal_tools/rasters/_rasterio.py", "osgeo": "gdal_tools/rasters/_osgeo.py"}


def modules(package: str) -> list[Path]:
    return sorted(ROOT.joinpath(package).rglob("*.py"))


SOURCES = [path for package in PACKAGES for path in modules(package)]


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), named(path))


def imports(path: Path) -> Iterator[str]:
    """Top names of everything a module imports, wherever in it."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, (
                f"{named(path)} line {node.lineno}: imports are absolute, so that this test sees them"
            )
            yield (node.module or "").split(".")[0]


def called(path: Path) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


def packages_with_public_names() -> list[str]:
    return [
        ".".join(path.relative_to(ROOT).parent.parts)
        for path in SOURCES
        if path.name == "__init__.py" and "__all__" in path.read_text(encoding="utf-8")
    ]


def docstring(value: object) -> str:
    """A class's or function's own docstring; not an inherited one, nor the signature that dataclass puts there."""
    text = (vars(value).get("__doc__") if inspect.isclass(value) else inspect.getdoc(value)) or ""
    return "" if text.startswith(f"{getattr(value, '__name__', '')}(") else text.strip()


def test_there_are_sources_to_judge() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in SOURCES} == set(PACKAGES)


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_imports_go_one_way(path: Path) -> None:
    assert not FORBIDDEN[path.relative_to(ROOT).parts[0]] & set(imports(path))


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_each_gdal_binding_is_imported_by_its_adapter_alone(path: Path) -> None:
    assert {BINDINGS[name] for name in set(imports(path)) & set(BINDINGS)} <= {named(path)}


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_libraries_never_print(path: Path) -> None:
    assert "print" not in set(called(path))


@pytest.mark.parametrize("package", packages_with_public_names())
def test_public_names_exist_and_have_docstrings_of_their_own(package: str) -> None:
    public = importlib.import_module(package)
    values = {name: getattr(public, name) for name in public.__all__}
    documented = {name: value for name, value in values.items() if callable(value)}
    assert documented
    assert [name for name, value in documented.items() if not docstring(value)] == []


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_every_module_says_what_it_holds(path: Path) -> None:
    assert (ast.get_docstring(tree(path)) or "").strip()


def test_metadata_is_the_one_place_of_the_version() -> None:
    version = next(
        line.split("=")[1]
        for line in ROOT.joinpath("metadata.txt").read_text().splitlines()
        if line.startswith("version=")
    )
    assert importlib.metadata.version("chronozarr-qgis") == version
