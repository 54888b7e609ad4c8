"""``chronozarr demo``."""

from __future__ import annotations

from pathlib import Path

import click

from gdal_tools.cli.options import progress_bar, quiet_option


@click.command("demo")
@click.argument("out_dir", type=click.Path(path_type=Path))
@quiet_option
def demo_command(out_dir: Path, quiet: bool) -> None:
    """Run the main job on a drawn river that moves over 24 months, in the new folder OUT_DIR.

    PNG frames with world files and four-band COGs become stores, which are validated, exported and drawn on a contact
    sheet.
    """
    from gdal_tools.demo import run_demo  # noqa: PLC0415  # needs Pillow, which no other command does

    with progress_bar("demo", quiet) as progress:
        result = run_demo(out_dir, progress)
    if not quiet:
        click.echo(str(result))
