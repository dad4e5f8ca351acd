"""``python -m spkver`` is the command ``spkver``."""

from spkver.cli import main

if __name__ == "__main__":
    main(prog_name="spkver")
