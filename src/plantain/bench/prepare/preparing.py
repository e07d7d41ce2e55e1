"""Making a benchmark from raw pairs: one frame, words, proposed regions; what cannot be used is listed, with why."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import orjson

from plantain.bench.benchmark.entries import id_order, source_cluster
from plantain.bench.benchmark.medebench import direction_of
from plantain.bench.benchmark.native_format import BenchmarkWriter
from plantain.bench.benchmark.samples import Sample
from plantain.bench.prepare.describers import chosen_rephrasing, concatenated
from plantain.bench.prepare.descriptions import Describe, given_of, walk_pairs
from plantain.bench.prepare.pairs import (
    PairRules,
    PreparedPair,
    RawFile,
    prepare_pair,
    prepared_there,
)
from plantain.bench.prepare.raw_pairs import RawPair, read_raw
from plantain.bench.prepare.regions_proposed import MOST, DifferenceProposer, RegionProposal, RegionProposer
from plantain.engines.contract import remote_engine
from plantain.engines.repeating import repeated
from plantain.files.csv_form import written_csv
from plantain.files.writing import replace_file
from plantain.pixels.encode import encode_mask
from plantain.records import Geometry, InputError, SourceImage, derive_seed
from plantain.roles import ChangeDescription, DescribeRequest
from plantain.runs.settings.terms import Terms
from plantain.runs.summary import RunSummary

PROPOSALS = "proposals"
"""Folder of the proposed regions, `proposals/ID-K.png`, and with ".json" the file that lists them."""

ROLE = "prepare"
"""Of the engine's workers that bring pairs into one frame."""

NOT_CHOSEN = "region: the first of the proposals ({}); nobody has looked at it"


@dataclass(frozen=True, slots=True)
class PreparedBenchmark:
    """What came of a folder of raw pairs.

    Attributes:
        path: of `benchmark.json`; None when the walk stopped before its end.
        samples: how many pairs became one.
        rejected: reason by id of the pairs that did not.
        undescribed: reason by id of the samples whose describer failed; the owner's own words stand.
        walked: calls, money, and why the walk stopped.
    """

    path: Path | None
    samples: int
    rejected: dict[str, str]
    undescribed: dict[str, str]
    walked: RunSummary


@dataclass(frozen=True, slots=True)
class PreparePlan:
    """How raw pairs become a benchmark.

    Attributes:
        name: of the benchmark.
        rules: what is asked of a pair.
        terms: whose one model describes pairs.
        proposer: proposes regions where the image after lies over the one before.
        seed: of paraphrases and of a describer's draws.
        first_region: take the first proposal as the region until somebody chooses.
        keep_sources: keep addresses, which can name patients; else only their hashes.
        calls: folder of the journal of a hosted describer.
    """

    name: str
    rules: PairRules
    terms: Terms
    calls: Path
    proposer: RegionProposer = field(default_factory=DifferenceProposer)
    seed: int = 0
    first_region: bool = True
    keep_sources: bool = False


async def prepare_benchmark(
    raw: Path, out: Path, plan: PreparePlan, progress: Callable[[int, int], None] | None = None
) -> PreparedBenchmark:
    """Makes a benchmark in our own format from `pairs.csv`, `before/` and `after/`.

    Args:
        raw: the folder; only read.
        out: a new folder, or one that an earlier attempt left unfinished.
        plan: how.
        progress: called with pairs done and in all.

    Raises:
        InputError: the table cannot be used; `out` holds something else; no pair can become a sample; an image may not
            be sent to a hosted describer.
    """
    pairs = read_raw(raw)
    facts: dict[str, object] = {"prepared": _facts(plan)}
    making = _Making(plan, pairs, BenchmarkWriter(out, plan.name, facts), progress)
    images = [_image(pair, plan.name, (1, 1), "") for pair in pairs]
    walked = await walk_pairs(len(pairs), images, making.carry, plan.terms, plan.calls, plan.seed)
    if walked.stopped:
        return PreparedBenchmark(None, making.writer.count, making.rejected, making.undescribed, walked)
    if not making.writer.count:
        first, reason = min(making.rejected.items(), key=lambda item: id_order(item[0]))
        raise InputError(f"{raw}: no pair can become a sample; the first one, {first}: {reason}")
    making.write_beside(out)
    return PreparedBenchmark(
        making.writer.close(), making.writer.count, making.rejected, making.undescribed, walked
    )


def _facts(plan: PreparePlan) -> dict[str, object]:
    rules = plan.rules
    return {
        "longest_side": rules.side,
        "least_alignment_quality": rules.least_quality,
        "keep_unaligned": rules.keep_unaligned,
        "text": "accepted"
        if rules.accept_text
        else (rules.reader.name if rules.reader else "not looked for"),
        "faces": "accepted" if rules.accept_faces else "refused",
        "describer": plan.terms.models[0],
        "regions": plan.proposer.name,
        "seed": plan.seed,
    }


class _Making:
    """The pairs on their way into the benchmark."""

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
        self.rejected: dict[str, str] = {}
        self.undescribed: dict[str, str] = {}

    async def carry(self, number: int, describe: Describe) -> None:
        """One pair through everything."""
        raw = self._pairs[number]
        prepared = await self._in_one_frame(raw)
        if isinstance(prepared, str):
            self.rejected[raw.id] = prepared
        else:
            description = await describe(await asyncio.to_thread(self._request, raw, prepared))
            if isinstance(description, str):
                self.undescribed[raw.id] = description
                description = ChangeDescription(raw.prompt)
            if not description.prompt:
                why = self.undescribed.pop(raw.id)
                self.rejected[raw.id] = f"no prompt: none was given, and the describer failed ({why})"
            else:
                await asyncio.to_thread(self._write, raw, prepared, description)
        self._done += 1
        if self._progress:
            self._progress(self._done, len(self._pairs))

    async def _in_one_frame(self, raw: RawPair) -> PreparedPair | str:
        """By a worker of the engine, where there is one that has the rules' reader of text; else here."""
        before, after = await asyncio.to_thread(lambda: (RawFile.read(raw.before), RawFile.read(raw.after)))
        rules, engine = self._plan.rules, remote_engine()
        if engine is not None:
            reads = rules.reader.name if rules.reader is not None else ""
            alone = replace(rules, reader=None)
            made = await repeated(engine, ROLE, prepared_there, before, after, alone, reads)
            if made is not None:
                return made
        return await asyncio.to_thread(prepare_pair, before, after, rules)

    def _request(self, raw: RawPair, prepared: PreparedPair) -> DescribeRequest:
        pair = concatenated(prepared.previous, prepared.changed)
        image = self._image(raw, prepared)
        seed = derive_seed(self._plan.seed, "describe", hashlib.sha256(pair.data).hexdigest())
        return DescribeRequest(pair, raw.organ, raw.task, raw.prompt, given_of(raw.given), image, seed)

    def _write(self, raw: RawPair, prepared: PreparedPair, description: ChangeDescription) -> None:
        proposals: tuple[RegionProposal, ...] = ()
        looks_at_after = isinstance(self._plan.proposer, DifferenceProposer)
        if not looks_at_after or not prepared.notes[0].startswith("not aligned"):
            words = raw.key_concept or description.entity or raw.task
            proposals = self._plan.proposer.propose(prepared.previous, prepared.changed, words)[:MOST]
        notes = list(prepared.notes)
        if proposals and self._plan.first_region:
            notes.append(NOT_CHOSEN.format(self._plan.proposer.name))
        rephrased = raw.rephrased or chosen_rephrasing(description.rephrasings, self._plan.seed, raw.id)
        height, width = prepared.previous.shape[:2]
        sample = Sample(
            id=raw.id,
            organ=raw.organ,
            task=raw.task,
            prompt=description.prompt,
            rephrased=rephrased,
            detailed=raw.detailed or description.description,
            key_concept=raw.key_concept or description.entity,
            direction=direction_of(description.prompt),
            cluster=_cluster(raw),
            image=replace(self._image(raw, prepared), modality=description.modality or "unknown"),
            previous=Path(),
            size=(width, height),
            aligned=prepared.aligned,
            notes=tuple(notes),
            source=raw.url if self._plan.keep_sources else "",
        )
        region = proposals[0].mask if proposals and self._plan.first_region else None
        self._propose(raw.id, proposals)
        self._words[raw.id] = description
        self.writer.add(sample, prepared.previous, prepared.changed, region)

    def _propose(self, sample_id: str, proposals: tuple[RegionProposal, ...]) -> None:
        folder = self.writer.out / PROPOSALS
        for number, proposal in enumerate(proposals, 1):
            folder.mkdir(parents=True, exist_ok=True)
            name = f"{PROPOSALS}/{sample_id}-{number}.png"
            replace_file(self.writer.out / name, encode_mask(proposal.mask))
            entry: dict[str, object] = {"file": name, "score": proposal.score, "how": proposal.how}
            self._proposals.setdefault(sample_id, []).append(entry)

    def _image(self, raw: RawPair, prepared: PreparedPair) -> SourceImage:
        height, width = prepared.previous.shape[:2]
        image = _image(raw, self._plan.name, (width, height), prepared.sha256)
        return replace(image, text_checked=self._plan.rules.reader is not None, synthetic=prepared.synthetic)

    def write_beside(self, out: Path) -> None:
        """Descriptions, proposals and rejections, each in the order of the ids."""
        words = {key: asdict(self._words[key]) for key in sorted(self._words, key=id_order)}
        _dump(out / "descriptions.json", {"describer": self._plan.terms.models[0], "pairs": words})
        regions = {key: self._proposals.get(key, []) for key in sorted(self._words, key=id_order)}
        _dump(out / f"{PROPOSALS}.json", {"proposer": self._plan.proposer.name, "samples": regions})
        refused = [(key, self.rejected[key]) for key in sorted(self.rejected, key=id_order)]
        replace_file(out / "rejected.csv", written_csv([("id", "reason"), *refused]).encode())


def _dump(path: Path, data: dict[str, object]) -> None:
    replace_file(path, orjson.dumps(data, option=orjson.OPT_INDENT_2) + b"\n")


def _cluster(raw: RawPair) -> str:
    """One person, else one source; both as hashes only."""
    if raw.patient:
        return "person-" + hashlib.sha256(raw.patient.encode()).hexdigest()[:12]
    return source_cluster(raw.url)


def _image(raw: RawPair, dataset: str, size: tuple[int, int], sha256: str) -> SourceImage:
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
