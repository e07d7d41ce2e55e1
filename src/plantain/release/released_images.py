"""Reads the images of a release: blobs, checked as they are read, a few ahead of their writer."""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from plantain.files.opening import replace_file
from plantain.journal import BlobRef, BlobStore
from plantain.release.plan import ReleaseFile
from plantain.release.proof.provenance import C2paSigner
from plantain.release.task_record import AttemptRecord

AHEAD = 16
"""Rows whose images are read before they are needed: enough to keep two cores busy, and about 10 MB."""

T = TypeVar("T")

ImageRequest = tuple[BlobRef, tuple[str, int] | None]
"""A blob of the run; with the task and round of an edited image, which is signed if there is a signer, else None."""


@dataclass(frozen=True, slots=True)
class ReleasedImage:
    """One image as released.

    Attributes:
        data: the released bytes: those of the run's blob, or with a signed manifest if there is a signer.
        sha256: hash of `data`.
        recorded: the run's blob.
    """

    data: bytes
    sha256: str
    recorded: BlobRef

    def listed(
        self,
        task: str | None,
        attempt: AttemptRecord | None,
        role: str,
        *,
        path: str = "",
        row: int | None = None,
        member: str | None = None,
    ) -> ReleaseFile:
        """Make the image's entry for the list of files; arguments as in `ReleaseFile`.

        An image that a file embeds gets its `path` when that file is written.
        """
        return ReleaseFile(
            path=path,
            sha256=self.sha256,
            bytes=len(self.data),
            role=role,
            pixel_sha256=self.recorded.pixel_sha256,
            task=task,
            generation=attempt.generation if attempt else None,
            round=attempt.round if attempt else None,
            row=row,
            member=member,
            source_sha256="" if self.sha256 == self.recorded.sha256 else self.recorded.sha256,
        )


class ReleasedImages:
    """The reader of a release's images: checks each by its hash, and signs edits if the release has a signer.

    A blob is hashed at its first read only; signed images are cached in the folder `kept`.
    """

    def __init__(self, blobs: BlobStore, signer: C2paSigner | None, kept: Path) -> None:
        self._blobs = blobs
        self._signer = signer
        self._kept = kept
        self._signing = threading.Lock()
        self._checked: set[str] = set()
        self._pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="plantain-release")

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def stream(
        self, wanted: Iterable[tuple[T, Sequence[ImageRequest]]]
    ) -> Iterator[tuple[T, list[ReleasedImage]]]:
        """Yield (item, images) for each (item, requests as for `read`), in order, reading ahead. Raise BadBlob."""
        waiting: deque[tuple[T, list[Future[ReleasedImage]]]] = deque()
        for item, requests in wanted:
            waiting.append((item, [self._pool.submit(self.read, one) for one in requests]))
            if len(waiting) > AHEAD:
                item, images = waiting.popleft()
                yield item, [image.result() for image in images]
        for item, images in waiting:
            yield item, [image.result() for image in images]

    def holds(self, image: BlobRef) -> bool:
        """Return True if the run contains the image's file, which may be missing in an imported run."""
        return self._blobs.holds(image.sha256)

    def read(self, wanted: ImageRequest) -> ReleasedImage:
        """Return one image as released, with its hash. Raise BadBlob if its file is missing or changed.

        `wanted` is (blob, (task id, round)) for an edited image, (blob, None) for an original or a mask.
        """
        image, attempt = wanted
        data = self._read(image.sha256)
        if self._signer is None or attempt is None:
            return ReleasedImage(data, image.sha256, image)
        signed = self._signed(self._signer, data, image, *attempt)
        return ReleasedImage(signed, hashlib.sha256(signed).hexdigest(), image)

    def _read(self, sha256: str) -> bytes:
        if sha256 in self._checked:
            return self._blobs.path(sha256).read_bytes()
        data = self._blobs.read(sha256)
        self._checked.add(sha256)
        return data

    def _signed(self, signer: C2paSigner, data: bytes, image: BlobRef, task: str, round: int) -> bytes:
        # By attempt, not by image: the manifest names the task and the round.
        path = self._kept / f"{task}-{round}-{image.sha256[:20]}"
        with self._signing:  # a chosen image can be in several pairs that are read at the same time
            if path.exists():
                return path.read_bytes()
            signed = signer.sign(data, task, round)
            replace_file(path, signed)
            return signed
