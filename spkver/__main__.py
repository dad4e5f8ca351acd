"""The commands ``spkver`` and ``spkver-eval``; ``python -m spkver`` is the first."""

from __future__ import annotations


def main() -> None:
    """Run the command ``spkver``."""
    from spkver.cli import main

    main(prog_name="spkver")


def evaluation_main() -> None:
    """Run the command ``spkver-eval``."""
    from spkver.evaluation_cli import main

    main(prog_name="spkver-eval")


if __name__ == "__main__":
    main()
