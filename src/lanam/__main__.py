"""``python -m lanam`` is ``lanam``."""

from lanam.cli import process

if __name__ == "__main__":
    process()
