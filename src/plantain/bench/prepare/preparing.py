"""Make a benchmark from raw pairs: align, describe, propose regions; list rejected pairs with the reason."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import orjson

from plantain.bench.benchmark.medebench import direction_of
from plantain.bench.benchmark.native_format import BenchmarkWriter
from plantain.bench.benchmark.samples import Sample, id_order, plain_image, source_cluster
from plantain.bench.prepare.alignment import LEAST_QUALITY
from plantain.bench.prepare.describers import Describe, concatenated, walk_pairs
from plantain.bench.prepare.pairs import PairRules, PreparedPair, RawPair, prepare_pair, read_raw
from plantain.bench.prepare.regions_grounded import GroundedProposer
from plantain.bench.prepare.regions_proposed import MOST, DifferenceProposer, RegionProposal
from plantain.files.opening import open_folder, replace_file
from plantain.files.tables import written_csv
from plantain.pixels.encode import encode_mask
from plantain.records import InputError, SourceImage, derive_seed
from plantain.roles import ChangeDescription, DescribeRequest
from plantain.runs.progress import RunSummary
from plantain.runs.terms import Terms

PROPOSALS = "proposals"
"""Folder of the proposed regions, `proposals/ID-K.png`; `proposals.json` lists them."""

NOT_CHOSEN = "region: the first of the proposals ({}); not reviewed"


@dataclass(slots=True)
class PreparedBenchmark:
    """The result of preparing a benchmark from raw pairs.

    Attributes:
        path: path of `benchmark.json`; None if stopped before the end.
        samples: number of samples.
        rejected: reasons by id of rejected pairs.
        undescribed: reasons by id of the samples whose describer failed; they keep their owner's words.
        summary: calls, cost, and the reason for a stop.
    """

    path: Path | None = None
    samples: int = 0
    rejected: dict[str, str] = field(default_factory=dict)
    undescribed: dict[str, str] = field(default_factory=dict)
    summary: RunSummary = field(default_factory=RunSummary)


async def prepare_benchmark(
    raw: Path,
    out: Path,
    terms: Terms,
    *,
    rules: PairRules,
    proposer: DifferenceProposer | GroundedProposer,
    progress: Callable[[int, int], None] | None = None,
) -> PreparedBenchmark:
    """Make a benchmark in our own format from `pairs.csv`, `before/` and `after/`.

    Args:
        raw: the folder; only read.
        out: a new folder, or that of an unfinished attempt; a hosted describer's calls are recorded in `OUT.calls`.
        terms: limits and consent; they name the one model that describes pairs.
        rules: requirements for every pair.
        proposer: the method that proposes regions; the first proposal is the region until a reader chooses.
        progress: called with the numbers of finished and of all pairs.

    Raises:
        InputError: the table is invalid, `out` has other contents, every pair is rejected, or an image may not be sent
            to a hosted describer.
    """
    pairs = read_raw(raw)
    read = rules.reader.name if rules.reader else "not detected"
    facts = {
        "longest_side": rules.side,
        "least_alignment_quality": LEAST_QUALITY,
        "keep_unaligned": rules.keep_unaligned,
        "text": "accepted" if rules.accept_text else read,
        "faces": "accepted" if rules.accept_faces else "refused",
        "describer": terms.models[0],
        "regions": proposer.name,
    }
    writer = BenchmarkWriter(out, out.name, {"prepared": facts})
    preparation = _Preparation(pairs, writer, rules, proposer, progress)
    images, calls = (_image(pair, out.name) for pair in pairs), out.with_name(f"{out.name}.calls")
    made = preparation.made
    made.summary = await walk_pairs(len(pairs), images, preparation.carry, terms, calls)
    made.samples = writer.count
    if made.summary.stopped:
        return made
    if not made.samples:
        first, reason = min(made.rejected.items(), key=lambda item: id_order(item[0]))
        raise InputError(f"{raw}: no pair can become a sample; the first one, {first}: {reason}")
    by_id = sorted(preparation.proposals.items(), key=lambda item: id_order(item[0]))
    regions = {"proposer": proposer.name, "samples": dict(by_id)}
    replace_file(out / f"{PROPOSALS}.json", orjson.dumps(regions, option=orjson.OPT_INDENT_2) + b"\n")
    rejected = sorted(made.rejected.items(), key=lambda item: id_order(item[0]))
    replace_file(out / "rejected.csv", written_csv([("id", "reason"), *rejected]).encode())
    made.path = writer.close()
    return made


@dataclass(slots=True)
class _Preparation:
    """State of the preparation: the settings, and finished proposals and rejections."""

    pairs: list[RawPair]
    writer: BenchmarkWriter
    rules: PairRules
    proposer: DifferenceProposer | GroundedProposer
    progress: Callable[[int, int], None] | None
    done: int = 0
    proposals: dict[str, list[dict[str, object]]] = field(default_factory=dict)
    made: PreparedBenchmark = field(default_factory=PreparedBenchmark)

    async def carry(self, number: int, describe: Describe) -> None:
        """Make one pair a sample."""
        raw = self.pairs[number]
        prepared = await asyncio.to_thread(prepare_pair, raw.before, raw.after, self.rules)
        if isinstance(prepared, str):
            self.made.rejected[raw.id] = prepared
        else:
            description = await describe(await asyncio.to_thread(self._request, raw, prepared))
            if isinstance(description, ChangeDescription):
                await asyncio.to_thread(self._write, raw, prepared, description)
            elif raw.prompt:
                self.made.undescribed[raw.id] = description
                await asyncio.to_thread(self._write, raw, prepared, ChangeDescription(raw.prompt))
            else:
                why = f"no prompt: none was given, and the describer failed ({description})"
                self.made.rejected[raw.id] = why
        self.done += 1
        if self.progress:
            self.progress(self.done, len(self.pairs))

    def _request(self, raw: RawPair, prepared: PreparedPair) -> DescribeRequest:
        pair = concatenated(prepared.previous, prepared.changed)
        seed = derive_seed(0, "describe", hashlib.sha256(pair.data).hexdigest())
        image = self._image(raw, prepared)
        return DescribeRequest(pair, raw.organ, raw.task, raw.prompt, raw.modality, image, seed)

    def _write(self, raw: RawPair, prepared: PreparedPair, description: ChangeDescription) -> None:
        notes = list(prepared.notes)
        proposals: Sequence[RegionProposal] = ()
        if prepared.in_place or not isinstance(self.proposer, DifferenceProposer):
            proposals = self.proposer.propose(prepared.previous, prepared.changed, raw.task)[:MOST]
        region = proposals[0].mask if proposals else None
        if region is not None:
            notes.append(NOT_CHOSEN.format(self.proposer.name))
        others = description.rephrasings
        drawn = others[derive_seed(0, "rephrasing", raw.id) % len(others)] if others else ""
        height, width = prepared.previous.shape[:2]
        image = self._image(raw, prepared)
        sample = Sample(
            id=raw.id,
            organ=raw.organ,
            task=raw.task,
            prompt=description.prompt,
            rephrased=raw.rephrased or drawn,
            detailed=raw.detailed or description.description,
            key_concept=raw.key_concept or description.entity,
            direction=direction_of(description.prompt),
            cluster=_cluster(raw),
            image=replace(image, modality=raw.modality or description.modality or "unknown"),
            previous=Path(),
            size=(width, height),
            aligned=prepared.aligned,
            notes=tuple(notes),
        )
        listed = self.proposals[raw.id] = []
        for number, proposal in enumerate(proposals, 1):
            name = f"{PROPOSALS}/{raw.id}-{number}.png"
            open_folder(self.writer.out, PROPOSALS)
            replace_file(self.writer.out / name, encode_mask(proposal.mask))
            listed.append({"file": name, "score": proposal.score, "how": proposal.how})
        self.writer.add(sample, prepared.previous, prepared.changed, region)

    def _image(self, raw: RawPair, prepared: PreparedPair) -> SourceImage:
        height, width = prepared.previous.shape[:2]
        return replace(
            _image(raw, self.writer.name, (width, height)),
            source_sha256=prepared.sha256,
            text_checked=self.rules.reader is not None,
            synthetic=prepared.synthetic,
        )


def _cluster(raw: RawPair) -> str:
    """Return the hash of the patient, else of the source."""
    if raw.patient:
        return "person-" + hashlib.sha256(raw.patient.encode()).hexdigest()[:12]
    return source_cluster(raw.url)


def _image(raw: RawPair, dataset: str, size: tuple[int, int] = (1, 1)) -> SourceImage:
    return replace(
        plain_image(raw.id, size, dataset),
        modality=raw.modality or "unknown",
        licence=raw.licence,
        group=_cluster(raw) if raw.patient else None,
    )
