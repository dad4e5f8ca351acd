"""Options that several commands share."""

from __future__ import annotations

import click

JOBS = click.option("--jobs", type=click.IntRange(min=1), help="Worker processes; all cores by default.")
