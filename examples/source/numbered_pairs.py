"""A source of its own: PNG files called PATIENT_NUMBER.png, all of one modality, all normal."""

from collections.abc import Iterator

from plantain.findings import Taxonomy
from plantain.records import InputError, SourceImage
from plantain.sources.registry import UNPREPARED, Found, Refused, SourceEntry, SourceKind, SourceOptions


class NumberedReader:
    def __init__(self, options: SourceOptions, taxonomy: Taxonomy) -> None:
        if not options.modality:
            raise InputError("--modality: numbered-pairs does not say what its pictures are")
        self._options, self._normal = options, taxonomy.normal(options.modality).name
        self._files = sorted(options.path.glob("*.png"))

    def count(self) -> int:
        return len(self._files)

    def scan(self) -> Iterator[Found]:
        for file in self._files:
            patient, _, number = file.stem.partition("_")
            if not number.isdecimal():
                yield Refused(file.name, "not called PATIENT_NUMBER.png")
                continue
            image = SourceImage(
                id=file.stem, dataset="numbered", modality=self._options.modality, labels=(self._normal,),
                licence=self._options.licence, source_sha256="", prepared_sha256="", geometry=UNPREPARED,
                group=patient,
            )  # fmt: skip
            yield SourceEntry(image, file, file.name)


KIND = SourceKind("PNG files called PATIENT_NUMBER.png, all normal", NumberedReader)
