"""Pictures that an imported release did not carry: what is missing, and where it could come from."""

from __future__ import annotations

from plantain.journal import JournalReader
from plantain.journal.reader import BLOBS_ABSENT
from plantain.records import SourceImage


def there(reader: JournalReader, sha256: str) -> bool:
    """False only for bytes that an imported release did not carry; elsewhere a missing blob is a fault, and told."""
    return reader.meta(BLOBS_ABSENT) is None or reader.has_blob(sha256)


def absence(reader: JournalReader, what: str, sha256: str, image: SourceImage) -> str:
    """Where a picture could come from that is not here, in words; "" where it is here, or ought to be.

    Args:
        reader: of the run.
        what: "original", "edited", "raw" or "mask".
        sha256: of the picture.
        image: the source image of its task.
    """
    if there(reader, sha256):
        return ""
    if what == "original":
        return (
            f"not in the imported release, which holds no originals: ask the owner of {image.dataset} for image "
            f"{image.id}, then prepare it with `plantain ingest` (prepared, its SHA-256 begins {sha256[:12]})"
        )
    if what == "raw":
        return f"not in the imported release: the run that made it has what the editor sent (SHA-256 {sha256[:12]}...)"
    return (
        "not in the folder that was imported: import one that holds the release's pictures, or ask for the run that "
        f"made it (SHA-256 {sha256[:12]}...)"
    )
