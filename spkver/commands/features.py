"""The commands ``spkver features``."""

from __future__ import annotations

from pathlib import Path

import click

from spkbase.console import Command


@click.command("export", cls=Command)
@click.argument("store", type=click.Path(path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path))
def export_features(store: Path, folder: Path) -> None:
    """Write STORE (a recipe's features.h5) as SIDEKIT's feature files, one for each recording, lossless, to FOLDER.

    The other way round, a recipe takes SIDEKIT's feature files, in any of their three forms, in place of features of
    its own: --set features.files=FOLDER.
    """
    from spkver.features import export_sidekit, read_feature_table

    click.echo(f"{export_sidekit(read_feature_table(store), folder)} files in {folder}")
