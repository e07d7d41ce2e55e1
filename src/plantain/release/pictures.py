"""The bytes that a release hands out: blobs, checked as they are read, a few ahead of whoever writes them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from plantain.files.opening import open_plain
from plantain.files.writing import replace_file
from plantain.journal import BlobStore
from plantain.release.plan import ReleaseFile
from plantain.release.proof.provenance import C2paSigner
from plantain.release.task_record import AttemptRecord, RecordedPicture

AHEAD = 16
"""Pictures read before they are asked for: enough to keep two cores busy, and about 10 MB."""


REMEMBERED = 1 << 20
"""Places for pictures that are known to hold, 8 bytes each: a picture stands in several tables, and hashing it costs as
much as writing it. Two that want one place push each other out, and are hashed again."""


@dataclass(frozen=True, slots=True)
class Released:
    """One image as released: the blob's bytes, or with a signed manifest in them."""

    data: bytes
    sha256: str
    picture: RecordedPicture

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
        """Its line in the list of files; an embedded image's path is that of the file being written."""
        return ReleaseFile(
            path=path,
            sha256=self.sha256,
            bytes=len(self.data),
            role=role,
            pixel_sha256=self.picture.pixel_sha256,
            task=task,
            generation=attempt.generation if attempt else None,
            round=attempt.round if attempt else None,
            row=row,
            member=member,
            source_sha256="" if self.sha256 == self.picture.sha256 else self.picture.sha256,
        )


@dataclass(frozen=True, slots=True)
class PictureRequest:
    """One picture that is about to be written, and the attempt it belongs to."""

    picture: RecordedPicture
    task: str
    round: int
    edited: bool = True


def _stamp(sha256: str, status: os.stat_result) -> int:
    """64 bits that tell a picture's file as it was when its hash was seen to hold; never 0."""
    seen = f"{sha256} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"
    return int.from_bytes(hashlib.blake2b(seen.encode(), digest_size=8).digest(), "big") or 1


class Pictures:
    """Reads blobs in threads, in the order asked for. A signed image is kept: signing again gives other bytes."""

    def __init__(self, blobs: BlobStore, signer: C2paSigner | None, kept: Path) -> None:
        self._blobs = blobs
        self._signer = signer
        self._kept = kept
        self._signing = threading.Lock()
        self._checked = array("Q", bytes(8 * REMEMBERED))
        self._pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="plantain-release")

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def stream(self, wanted: Iterable[PictureRequest]) -> Iterator[Released]:
        """Every wanted picture in order. Raises BadBlob for one that is missing or changed."""
        waiting: deque[Future[Released]] = deque()
        for one in wanted:
            waiting.append(self._pool.submit(self.read, one))
            if len(waiting) > AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def holds(self, picture: RecordedPicture) -> bool:
        """Whether the run has the bytes: an imported one may only know that they exist."""
        return self._blobs.path(picture.sha256).exists()

    def read(self, wanted: PictureRequest) -> Released:
        """One picture, in the calling thread. Raises BadBlob."""
        picture = wanted.picture
        data = self._read(picture.sha256)
        if self._signer is None or not wanted.edited:
            return Released(data, picture.sha256, picture)
        signed = self._signed(self._signer, data, wanted)
        return Released(signed, hashlib.sha256(signed).hexdigest(), picture)

    def _read(self, sha256: str) -> bytes:
        """A blob, held to its hash the first time, and again when anybody has touched it since."""
        path, place = self._blobs.path(sha256), int(sha256[:16], 16) % REMEMBERED
        known = self._checked[place]
        if known:
            with contextlib.suppress(OSError), open_plain(path) as file:
                if _stamp(sha256, os.fstat(file.fileno())) == known:
                    return file.read()
        data = self._blobs.read(sha256)
        self._checked[place] = _stamp(sha256, path.stat())
        return data

    def _signed(self, signer: C2paSigner, data: bytes, wanted: PictureRequest) -> bytes:
        # By attempt, not by picture: the manifest names the task and the round.
        path = self._kept / f"{wanted.task}-{wanted.round}-{wanted.picture.sha256[:20]}"
        with self._signing:  # a chosen image can stand in several pairs that are read at the same time
            if path.exists():
                return path.read_bytes()
            signed = signer.sign(data, wanted.task, wanted.round)
            replace_file(path, signed)
            return signed
