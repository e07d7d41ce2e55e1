"""Make a benchmark from raw pairs: align, describe, propose regions; list rejected pairs with the reason."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import orjson

from plantain.bench.benchmark.medebench import direction_of
from plantain.bench.benchmark.native_format import BenchmarkWriter
from plantain.bench.benchmark.samples import Sample, id_order, source_cluster
from plantain.bench.prepare.alignment import LEAST_QUALITY
from plantain.bench.prepare.describers import Describe, concatenated, walk_pairs
from plantain.bench.prepare.pairs import (
    PairRules,
    PreparedPair,
    RawFile,
    RawPair,
    prepare_pair,
    prepared_there,
    read_raw,
)
from plantain.bench.prepare.regions_grounded import GroundedProposer
from plantain.bench.prepare.regions_proposed import MOST, DifferenceProposer, RegionProposal
from plantain.engines.contract import engine_in_place, repeated
from plantain.files.opening import open_folder, replace_file
from plantain.files.tables import written_csv
from plantain.pixels.encode import encode_mask
from plantain.records import Geometry, InputError, SourceImage, derive_seed
from plantain.roles import ChangeDescription, DescribeRequest
from plantain.runs.progress import RunSummary
from plantain.runs.terms import Terms

PROPOSALS = "proposals"
"""Folder of the proposed regions, `proposals/ID-K.png`; `proposals.json` lists them."""

NOT_CHOSEN = "region: the first of the proposals ({}); not reviewed"


@dataclass(frozen=True, slots=True)
class PreparePlan:
    """The settings by which raw pairs become a benchmark.

    Attributes:
        name: name of the new benchmark.
        rules: requirements for every pair.
        terms: limits and consent; they name the one model that describes pairs.
        calls: folder of the journal of a hosted describer.
        proposer: the method that proposes regions.
        seed: seed of paraphrases and of a describer's draws.
        first_region: use the first proposal as the region until a reader chooses.
        keep_sources: keep addresses, which can name patients; else only their hashes.
    """

    name: str
    rules: PairRules
    terms: Terms
    calls: Path
    proposer: DifferenceProposer | GroundedProposer = field(default_factory=DifferenceProposer)
    seed: int = 0
    first_region: bool = True
    keep_sources: bool = False

    @property
    def facts(self) -> dict[str, object]:
        """The settings that are stored in the benchmark's file, by name."""
        rules = self.rules
        read = rules.reader.name if rules.reader else "not detected"
        return {
            "longest_side": rules.side,
            "least_alignment_quality": LEAST_QUALITY,
            "keep_unaligned": rules.keep_unaligned,
            "text": "accepted" if rules.accept_text else read,
            "faces": "accepted" if rules.accept_faces else "refused",
            "describer": self.terms.models[0],
            "regions": self.proposer.name,
            "seed": self.seed,
        }


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
    raw: Path, out: Path, plan: PreparePlan, progress: Callable[[int, int], None] | None = None
) -> PreparedBenchmark:
    """Make a benchmark in our own format from `pairs.csv`, `before/` and `after/`.

    Args:
        raw: the folder; only read.
        out: a new folder, or that of an unfinished attempt.
        plan: rules, models and settings.
        progress: called with the numbers of finished and of all pairs.

    Raises:
        InputError: the table is invalid, `out` has other contents, every pair is rejected, or an image may not be sent
            to a hosted describer.
    """
    pairs = read_raw(raw)
    preparation = _Preparation(
        plan, pairs, BenchmarkWriter(out, plan.name, {"prepared": plan.facts}), progress
    )
    images = [_image(pair, plan.name) for pair in pairs]
    made = preparation.made
    made.summary = await walk_pairs(len(pairs), images, preparation.carry, plan.terms, plan.calls, plan.seed)
    made.samples = preparation.writer.count
    if made.summary.stopped:
        return made
    if not made.samples:
        first, reason = min(made.rejected.items(), key=lambda item: id_order(item[0]))
        raise InputError(f"{raw}: no pair can become a sample; the first one, {first}: {reason}")
    preparation.write_lists(out)
    made.path = preparation.writer.close()
    return made


class _Preparation:
    """State of the preparation: finished descriptions, proposals and rejections."""

    def __init__(
        self,
        plan: PreparePlan,
        pairs: list[RawPair],
        writer: BenchmarkWriter,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self._plan, self._pairs, self.writer, self._progress = plan, pairs, writer, progress
        self._done = 0
        self._words: dict[str, ChangeDescription] = {}
        self._proposals: dict[str, list[dict[str, object]]] = {}
        self.made = PreparedBenchmark()

    async def carry(self, number: int, describe: Describe) -> None:
        """Make one pair a sample."""
        raw = self._pairs[number]
        prepared = await self._aligned(raw)
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
        self._done += 1
        if self._progress:
            self._progress(self._done, len(self._pairs))

    async def _aligned(self, raw: RawPair) -> PreparedPair | str:
        """Align on a worker of the engine if one has the rules' text reader; else in this process."""
        before, after = await asyncio.to_thread(lambda: (RawFile.read(raw.before), RawFile.read(raw.after)))
        rules, engine = self._plan.rules, engine_in_place.get()
        if engine is not None:
            reads = rules.reader.name if rules.reader is not None else ""
            alone = replace(rules, reader=None)
            made = await repeated(engine, "prepare", prepared_there, before, after, alone, reads)
            if made is not None:
                return made
        return await asyncio.to_thread(prepare_pair, before, after, rules)

    def _request(self, raw: RawPair, prepared: PreparedPair) -> DescribeRequest:
        pair = concatenated(prepared.previous, prepared.changed)
        seed = derive_seed(self._plan.seed, "describe", hashlib.sha256(pair.data).hexdigest())
        given = {name: value for name, value in raw.given.items() if value}
        return DescribeRequest(pair, raw.organ, raw.task, raw.prompt, given, self._image(raw, prepared), seed)

    def _write(self, raw: RawPair, prepared: PreparedPair, description: ChangeDescription) -> None:
        plan, notes = self._plan, list(prepared.notes)
        proposals: Sequence[RegionProposal] = ()
        if prepared.in_place or not isinstance(plan.proposer, DifferenceProposer):
            proposals = plan.proposer.propose(prepared.previous, prepared.changed, raw.task)[:MOST]
        region = proposals[0].mask if proposals and plan.first_region else None
        if region is not None:
            notes.append(NOT_CHOSEN.format(plan.proposer.name))
        others = description.rephrasings
        drawn = others[derive_seed(plan.seed, "rephrasing", raw.id) % len(others)] if others else ""
        height, width = prepared.previous.shape[:2]
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
            image=replace(self._image(raw, prepared), modality=description.modality or "unknown"),
            previous=Path(),
            size=(width, height),
            aligned=prepared.aligned,
            notes=tuple(notes),
            source=raw.url if plan.keep_sources else "",
        )
        for number, proposal in enumerate(proposals, 1):
            name = f"{PROPOSALS}/{raw.id}-{number}.png"
            open_folder(self.writer.out, PROPOSALS)
            replace_file(self.writer.out / name, encode_mask(proposal.mask))
            entry: dict[str, object] = {"file": name, "score": proposal.score, "how": proposal.how}
            self._proposals.setdefault(raw.id, []).append(entry)
        self._words[raw.id] = description
        self.writer.add(sample, prepared.previous, prepared.changed, region)

    def _image(self, raw: RawPair, prepared: PreparedPair) -> SourceImage:
        height, width = prepared.previous.shape[:2]
        image = _image(raw, self._plan.name, (width, height), prepared.sha256)
        return replace(image, text_checked=self._plan.rules.reader is not None, synthetic=prepared.synthetic)

    def write_lists(self, out: Path) -> None:
        """Write descriptions, proposals and rejections, each in the order of the ids."""
        ids, rejected = sorted(self._words, key=id_order), self.made.rejected
        words = {key: asdict(self._words[key]) for key in ids}
        _dump(out / "descriptions.json", {"describer": self._plan.terms.models[0], "pairs": words})
        regions = {key: self._proposals.get(key, []) for key in ids}
        _dump(out / f"{PROPOSALS}.json", {"proposer": self._plan.proposer.name, "samples": regions})
        rows = [(key, rejected[key]) for key in sorted(rejected, key=id_order)]
        replace_file(out / "rejected.csv", written_csv([("id", "reason"), *rows]).encode())


def _dump(path: Path, data: dict[str, object]) -> None:
    replace_file(path, orjson.dumps(data, option=orjson.OPT_INDENT_2) + b"\n")


def _cluster(raw: RawPair) -> str:
    """Return the hash of the patient, else of the source."""
    if raw.patient:
        return "person-" + hashlib.sha256(raw.patient.encode()).hexdigest()[:12]
    return source_cluster(raw.url)


def _image(raw: RawPair, dataset: str, size: tuple[int, int] = (1, 1), sha256: str = "") -> SourceImage:
    width, height = size
    return SourceImage(
        id=raw.id,
        dataset=dataset,
        modality=raw.given.get("modality") or "unknown",
        labels=(),
        licence=raw.licence,
        source_sha256=sha256,
        prepared_sha256="",
        geometry=Geometry(width, height, "pad", 0, 0, width, height),
        group=_cluster(raw) if raw.patient else None,
    )
