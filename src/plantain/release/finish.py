"""What stands beside the data of a release: manifest, checksums, licences, cards."""

from __future__ import annotations

from plantain.journal import JournalReader
from plantain.release.plan import ExportOptions, Release


def finish_release(release: Release, reader: JournalReader, options: ExportOptions) -> None:
    """Writes everything beside the data files of `release`; running it again writes the same.

    `reader` reads the snapshot of the journal that the data files came from.
    """
