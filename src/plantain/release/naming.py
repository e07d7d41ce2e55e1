"""Names of images and folders in a release, and pseudonyms of images whose owner restricts their ids."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

import orjson

from plantain.catalogue.groups import JOINED
from plantain.files.opening import replace_file
from plantain.journal.blobs import sync_folder
from plantain.records import Direction, InputError, Licence, SourceImage
from plantain.release.task_record import TaskRecord

CROSSWALK = "release-crosswalk.json"
"""In the run's folder, never in a release: the salt, and every pseudonym with its id."""

LONGEST = 120
"""Longest id in a file's name; a longer one is cut and gets a hash. File systems allow 255 bytes in all."""

_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]")


def safe(name: str) -> str:
    """Return a name made safe for paths: "_" for all but A-Z, a-z, 0-9 and ._+-, and for leading dots.

    A name of more than 120 characters is cut and gets a hash. Different short names may give the same one.
    """
    plain = re.sub(r"^\.+", lambda dots: "_" * len(dots[0]), _UNSAFE.sub("_", name)) or "_"
    if len(plain) <= LONGEST:
        return plain
    return f"{plain[: LONGEST - 9]}-{hashlib.sha256(name.encode(errors='surrogateescape')).hexdigest()[:8]}"


def task_word(record: TaskRecord) -> str:
    """Return the last part of a task's folder and file names: "edit" for additions, else the record's `word`."""
    return "edit" if record.direction is Direction.ADD else record.direction.value


def task_folder(record: TaskRecord) -> str:
    """Return the folder of a task's image in a tree of files, e.g. "odir-5k-edit"."""
    return f"{safe(record.image.dataset)}-{task_word(record)}"


def slug(record: TaskRecord) -> str:
    """Return modality and direction of a task as part of a table's name, e.g. "chest_xray_add"."""
    return f"{modality_slug(record.modality)}_{record.direction.value}"


def modality_slug(modality: str) -> str:
    """Return a modality as part of a table's name, e.g. "chest_xray"."""
    return safe(modality).replace(".", "_").replace("-", "_")


class Pseudonyms:
    """Pseudonyms for a run's images: ids and groups of credentialed sources become salted hashes.

    The same image always gets the same one. An imported run keeps its ids, which are pseudonyms already if required.
    """

    def __init__(self, run: Path, imported: bool) -> None:
        self._path = run / CROSSWALK
        self._imported = imported
        self._salt = ""
        self._known: dict[str, str] = {}
        self._reaching: set[str] = set()
        if self._path.exists():
            try:
                kept = orjson.loads(self._path.read_bytes())
                self._salt, self._known = str(kept["salt"]), dict(kept["ids"])
            except (orjson.JSONDecodeError, KeyError, TypeError) as error:
                raise InputError(f"{self._path}: not a crosswalk of plantain ({error})") from error

    def prepare(self, images: Iterable[SourceImage]) -> None:
        """Make the pseudonyms that these images need and store them in the run; call it before a release."""
        before = len(self._known)
        for image in images:
            if self._needed(image):
                for name in {image.id, image.id.partition("+")[0], image.group or image.id}:
                    if name.startswith(JOINED):
                        # Named after one of its images, and known to those of other datasets: no split may part them.
                        self._reaching.add(name)
                        self._make("", name)
                    else:
                        self._make(image.dataset, name)
        if len(self._known) != before:
            self._save()

    def released(self, image: SourceImage) -> SourceImage:
        """Return an image's record for a release: with pseudonyms if needed, without consent."""
        if not self._needed(image):
            return replace(image, group=self._group(image), consent=None)
        base, plus, rest = image.id.partition("+")
        name = self._known[f"{image.dataset}/{base}"]
        return replace(
            image,
            id=name + plus + rest,
            group=self._group(image),
            note=image.note.replace(base, name),
            # The owner's list of checksums would turn the file's hash back into its name.
            source_sha256=self._keyed(f"source {image.source_sha256}") if image.source_sha256 else "",
            consent=None,
        )

    def behind(self, pseudonym: str) -> set[str]:
        """Return the real ids behind a pseudonym of this run; an empty set for any other name."""
        return {key.partition("/")[2] for key, known in self._known.items() if known == pseudonym}

    def called(self, image: SourceImage) -> str:
        """Return the id of an image in releases of this run, without making a pseudonym."""
        base, plus, rest = image.id.partition("+")
        return self._known.get(f"{image.dataset}/{base}", base) + plus + rest

    def forget(self, image_ids: Collection[str], groups: Collection[str]) -> None:
        """Remove withdrawn images and groups, by their names or pseudonyms, from the stored pseudonyms."""
        gone = {*groups, *image_ids, *(name.partition("+")[0] for name in image_ids)}
        gone |= {name for group in groups for name in self.behind(group)}
        kept = {key: known for key, known in self._known.items() if key.partition("/")[2] not in gone}
        if len(kept) < len(self._known):
            self._known = kept
            self._save()

    def _group(self, image: SourceImage) -> str | None:
        if image.group in self._reaching:
            return self._known[f"/{image.group}"]
        if image.group is None or not self._needed(image):
            return image.group
        return self._known[f"{image.dataset}/{image.group}"]

    def _needed(self, image: SourceImage) -> bool:
        return image.licence is Licence.CREDENTIALED and not self._imported

    def _make(self, dataset: str, name: str) -> None:
        if not self._salt:
            self._salt = os.urandom(32).hex()
        key = f"{dataset}/{name}"
        if key not in self._known:
            self._known[key] = f"{JOINED if name.startswith(JOINED) else ''}x{self._keyed(key)[:20]}"

    def _keyed(self, text: str) -> str:
        return hmac.new(bytes.fromhex(self._salt), text.encode(), hashlib.sha256).hexdigest()

    def _save(self) -> None:
        kept = {"salt": self._salt, "ids": dict(sorted(self._known.items()))}
        replace_file(self._path, orjson.dumps(kept, option=orjson.OPT_INDENT_2), mode=0o600)
        sync_folder(self._path.parent)
