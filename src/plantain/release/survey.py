"""Plans a release once from a snapshot of the journal: records, splits, and the contents of each file."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import orjson

from plantain.catalogue.groups import Groups
from plantain.journal import BadBlob, BlobRef, JournalReader, JsonValue
from plantain.journal.questions.release import closed_images, models_that_answered, stored_image_rows
from plantain.journal.verify import places_of
from plantain.privacy.licences import STRICTEST_LAST, LicenceText, SourcePart, original_parts, strictest
from plantain.records import SourceImage, TaskKind, TaskState
from plantain.release.layouts import dicom
from plantain.release.layouts.contract import ORIGINALS, chosen
from plantain.release.licensing import Originals, decide_originals, released_terms
from plantain.release.naming import Pseudonyms, modality_slug, safe, slug, task_folder
from plantain.release.plan import (
    IMPORTED,
    ORIGINALS_FOLDER,
    SPLITS,
    ExportOptions,
    RunFacts,
    splits_of,
)
from plantain.release.staging import Staging
from plantain.release.task_record import (
    TaskRecord,
    make_record,
    pairs_of,
    to_json,
)


class Survey:
    """Plan a release: read a snapshot of the journal once, and store the plan in the staging database."""

    def __init__(self, reader: JournalReader, run: Path, options: ExportOptions, staging: Staging) -> None:
        self._reader = reader
        self._options = options
        self._staging = staging
        imported = reader.meta(IMPORTED)
        self._imported = imported is not None
        self._stated = _stated(reader) if imported is None else orjson.loads(imported)
        self._pseudonyms = Pseudonyms(run, imported=self._imported)
        self._trees = {name: one.path_of for name, one in chosen(options.layouts).items() if one.path_of}
        self._originals = Originals({}, frozenset())
        self._sharing: dict[str, list[SourceImage]] = defaultdict(list)
        self._parts: Mapping[str, SourcePart] = {}
        self._pairs = 0
        self._counts: dict[str, Counter[str]] = defaultdict(Counter)

    def make(self) -> None:
        """Write the plan. Raise InputError if no task is closed, or a source needs an agreement that was not named."""
        terms = released_terms(self._reader, self._options)
        own = [self._reader.image(image_id) for image_id in closed_images(self._reader)]
        self._pseudonyms.prepare(own)
        images = {image.id: self._pseudonyms.released(image) for image in own}
        self._originals = decide_originals(self._reader, images.values(), self._options.originals)
        parts = original_parts(_sources(images), self._originals.counts)
        self._parts = {part.dataset: part for part in parts}
        for _, image in sorted(images.items()):
            if image.prepared_sha256 in self._originals.carried:
                self._sharing[image.prepared_sha256].append(image)
        # The seed of the original run, also after an import: it decides splits.
        seed = int(str(self._stated["seed"]))
        groups = Groups(images.values())
        by_image = {name: groups.group(image) for name, image in images.items()}
        of_group = splits_of(by_image.values(), seed)
        split = {name: of_group[group] for name, group in by_image.items()}
        for seq, record in enumerate(self._records(images, split)):
            self._staging.add_task(seq, task_folder(record), to_json(record))
            self._count(record)
            self._place_original(seq, record)
            self._place(seq, record)
        self._staging.facts = self._facts(groups, images, terms)
        self._staging.sources = _sources(images)

    def _records(self, images: dict[str, SourceImage], split: dict[str, str]) -> Iterator[TaskRecord]:
        reader = self._reader
        for row in reader.tasks():
            if row.state is TaskState.PENDING or row.task.kind is TaskKind.BENCH:
                continue
            attempts = reader.attempts(row.id)
            hashes = {h for a in attempts for h in (a.edited, a.mask) if h is not None}
            yield make_record(
                row,
                images[row.task.image_id],
                attempts,
                reader.verdicts(row.id),
                reader.scores(row.id),
                {stored[0]: BlobRef(*stored) for stored in stored_image_rows(reader, hashes)},
                split[row.task.image_id],
            )

    def _count(self, record: TaskRecord) -> None:
        self._counts["tasks"][record.state.value] += 1
        self._counts["splits"][record.split] += 1
        self._counts["judges"].update(t.verdict.judge for a in record.attempts for t in a.verdicts)
        self._pairs += len(pairs_of(record))

    # --- the contents of each file ------------------------------------------------------------------

    def _place(self, seq: int, record: TaskRecord) -> None:
        layouts = self._options.layouts
        part = f"{slug(record)}-{record.split}"
        size = sum(len(a.instruction or "") for a in record.attempts) + 4000
        original = self._originals.carried.get(record.image.prepared_sha256)
        if "parquet" in layouts:
            self._staging.add_entry("trajectories", f"data/trajectories/{part}", seq, -1, -1, size)
            for index, attempt in enumerate(record.attempts):
                for number in range(len(attempt.verdicts)):
                    self._staging.add_entry("verdicts", f"data/verdicts/{part}", seq, index, number, 4000)
        for index, attempt in enumerate(record.attempts):
            if attempt.edited is None or not self._carried(attempt.edited):
                continue
            whole = attempt.edited.bytes + size
            if "parquet" in layouts:
                weight = whole + (attempt.mask.bytes if attempt.mask else 0)
                if attempt.role == "success" and original is not None:
                    weight += original.bytes
                    self._staging.add_entry("train", f"data/train/{part}", seq, index, -1, weight)
                self._staging.add_entry("images", f"data/{attempt.role}/{part}", seq, index, -1, weight)
            if "webdataset" in layouts:
                self._staging.add_entry(
                    "webdataset", f"wds/{attempt.role}-{record.split}", seq, index, -1, whole
                )
            for name, path_of in self._trees.items():
                if path := path_of(record, attempt):
                    more = f"{record.task_id[:8]}-{attempt.generation}-{attempt.round}"
                    self._staging.add_entry(
                        name, task_folder(record), seq, index, -1, 0, self._free(path, more)
                    )
        if "parquet" in layouts or "preference" in layouts:
            for pair in pairs_of(record):
                both = [record.attempts[pair.chosen].edited, record.attempts[pair.rejected].edited]
                if all(image is not None and self._carried(image) for image in both):
                    whole = size + sum(image.bytes for image in both if image is not None)
                    order = (pair.chosen, pair.rejected)
                    self._staging.add_entry("preference", f"data/preference/{part}", seq, *order, whole)

    def _carried(self, image: BlobRef) -> bool:
        """Return True if the run has the bytes, and they are no restricted original. Only an imported one may not."""
        if image.sha256 in self._originals.barred:
            return False
        there = self._reader.has_blob(image.sha256)
        if not there and not self._imported and image.sha256 not in self._reader.blobs.damaged:
            raise BadBlob(f"{self._reader.blob_path(image.sha256)} is missing")
        return there

    def _place_original(self, seq: int, record: TaskRecord) -> None:
        """Plan the original of a task with the first task that has it."""
        sha256 = record.image.prepared_sha256
        sharing = self._sharing.pop(sha256, None)
        if sharing is None:
            return
        original, first, layouts = self._originals.carried[sha256], sharing[0], self._options.layouts
        path = self._free(f"{ORIGINALS_FOLDER}/{safe(first.dataset)}/{safe(first.id)}.jpeg", sha256[:8])
        self._staging.add_original(original, path, self._original_cells(sha256, sharing))
        if "parquet" in layouts or "preference" in layouts:
            stem = f"data/originals/{modality_slug(record.modality)}-{record.split}"
            self._staging.add_entry("originals", stem, seq, -1, -1, original.bytes + 1000)
        if not {"med-banana", "trajectory", "webdataset"}.isdisjoint(layouts):
            self._staging.add_entry(ORIGINALS, ORIGINALS_FOLDER, seq, -1, -1, 0, path)
        if "dicom" in layouts:
            self._staging.add_entry(
                dicom.ORIGINALS, ORIGINALS_FOLDER, seq, -1, -1, 0, dicom.original_path(first)
            )

    def _original_cells(self, sha256: str, sharing: list[SourceImage]) -> bytes:
        """Return the row of an original in `ORIGINAL_TABLE`, without the image, as JSON."""
        first = sharing[0]
        part = self._parts[first.dataset]
        return orjson.dumps(
            {
                "sha256": sha256,
                "image_id": first.id,
                "dataset": first.dataset,
                "patient": first.group,
                "shared_by": [f"{image.dataset}/{image.id}" for image in sharing],
                "modality": first.modality,
                "labels": list(first.labels),
                "licence": max((image.licence for image in sharing), key=STRICTEST_LAST.index).value,
                "terms": part.licence.spdx,
                "credit": part.credit,
                "synthetic": first.synthetic,
            }
        )

    def _free(self, path: str, more: str) -> str:
        """Return the path, or a longer one where another file has it (ignoring case, as macOS does)."""
        if self._staging.take_name(path):
            return path
        stem, dot, ending = path.rpartition(".")
        other = f"{stem}-{more}{dot}{ending}"
        self._staging.take_name(other)
        return other

    # --- facts of the run ---------------------------------------------------------------------------

    def _facts(
        self, groups: Groups, images: dict[str, SourceImage], terms: Mapping[str, LicenceText]
    ) -> RunFacts:
        counted = {name: dict(sorted(counter.items())) for name, counter in self._counts.items()}
        known = ("run_id", "name", "seed", "code_version", "frozen", "models", "left_out", "method")
        return RunFacts(
            **{name: self._stated[name] for name in known if name in self._stated},  # type: ignore[arg-type]
            tasks=counted["tasks"],
            pairs=self._pairs,
            splits={name: self._counts["splits"][name] for name in SPLITS},
            split_groups=groups.count(images.values()),
            ungrouped_images=groups.ungrouped,
            terms=dict(sorted(terms.items())),
            originals=self._originals.counts if self._options.originals == "auto" else {},
            judges=counted.get("judges", {}),
            damaged=tuple(places_of(self._reader, self._reader.blobs.damaged)),
        )


def _stated(reader: JournalReader) -> dict[str, JsonValue]:
    """Return the facts of a run of our own; an imported one has those of the original run."""
    models: dict[str, list[JsonValue]] = defaultdict(
        list
    )  # by step, every model asked with every one that answered
    for step, model, served in models_that_answered(reader):
        models[step].append([model, served])
    header = reader.header
    return {
        "run_id": header.run_id,
        "name": header.name,
        "seed": header.seed,
        "code_version": header.code_version,
        "frozen": header.frozen,
        "models": {**models},
        "left_out": reader.counts()[TaskState.PENDING],
        "method": orjson.loads(reader.meta("method") or "{}"),
    }


def _sources(images: dict[str, SourceImage]) -> dict[str, dict[str, str | int]]:
    """Return the strictest licence, the version and the number of used images of each dataset."""
    ordered = sorted(images.values(), key=lambda image: (image.dataset, image.id))
    classes = strictest((image.dataset, image.licence) for image in ordered)
    counts = Counter(image.dataset for image in ordered)
    versions = {image.dataset: image.version for image in reversed(ordered)}
    return {
        name: {"licence": allowed.value, "version": versions[name], "images": counts[name]}
        for name, allowed in classes.items()
    }
