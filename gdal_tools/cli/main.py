"""The command group, and the promise that a user's mistake ends in one clear line."""

from __future__ import annotations

import os
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click

from chronozarr_core.errors import ChronozarrError
from gdal_tools.cli.convert import convert_command, encode_command
from gdal_tools.cli.demo import demo_command
from gdal_tools.cli.stores import export_cog_command, info_command, validate_command

DEBUG = "CHRONOZARR_DEBUG"


class Commands(click.Group):
    """Commands whose errors are one message on standard error and exit status 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ChronozarrError as error:
            _fail(str(error))
        except BrokenPipeError:
            raise  # the reader of a pipe has gone, which click ends quietly
        except OSError as error:
            _fail(f"{error.filename or 'the system'}: {error.strerror or error}")
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if os.environ.get(DEBUG):
                raise
            _fail(f"unexpected {type(error).__name__}: {error}; this is a bug, please report it with {DEBUG}=1 set")


def _fail(message: str) -> None:
    click.echo(f"Error: {message}", err=True)
    sys.exit(1)


def _version() -> str:
    try:
        return version("chronozarr-qgis")
    except PackageNotFoundError:
        return "unknown (not installed)"


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(_version(), prog_name="chronozarr")
def main() -> None:
    """Raster time series as chronozarr stores: dated images in, an exact Zarr v3 pyramid out, and back to COGs."""


for command in (
    convert_command,
    encode_command,
    validate_command,
    info_command,
    export_cog_command,
    demo_command,
):
    main.add_command(command)
