"""``python -m lanam`` is ``lanam``."""

from lanam.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
