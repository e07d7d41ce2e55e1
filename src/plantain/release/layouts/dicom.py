"""The DICOM layout: a Secondary Capture instance of every successful edit and of every original.

Synthetic Data (0008,001C) is YES in an edit, and its derivation states the instruction. The pixel data is the JPEG of
the run itself, with its XMP mark: nothing is compressed twice, and an import finds the judged bytes. No date or time is
written, and every UID is derived from content, so that two exports are equal.
"""

from __future__ import annotations

import hashlib
import io
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import PIL.Image

from plantain.catalogue.groups import JOINED
from plantain.pixels.decode import BadImage, one_line
from plantain.records import Direction, InputError, SourceImage
from plantain.release.layouts.contract import Layout, original_of, write_each
from plantain.release.plan import ORIGINAL, ReleaseFile
from plantain.release.released_images import ReleasedImage, ReleasedImages
from plantain.release.staging import StagedEntry, Staging
from plantain.release.task_record import AttemptRecord, TaskRecord, from_json
from plantain.version import __version__

if TYPE_CHECKING:
    from pydicom import Dataset

NAME = "dicom"

ORIGINALS = "dicom-originals"
"""Name under which originals are planned."""

MEMBER = "PixelData"
"""The image inside a file, in the manifest."""

_NAMESPACE = uuid.UUID("0a5e5d0c-0a3b-5a60-9d5c-3f1d5d3f6c1e")
_CREATOR = "plantain"

_CLOCK = (
    *("InstanceCreationDate", "InstanceCreationTime", "ContentDate", "ContentTime"),
    *("DateOfSecondaryCapture", "TimeOfSecondaryCapture"),
)
"""Set by highdicom to the present time; each is optional (PS3.3 A.8.1)."""

_BODY_PARTS = {"chest_xray": "CHEST", "brain_mri": "BRAIN", "fundus": "EYE"}
_UNPAIRED = ("CHEST", "BRAIN")

_CODES = {
    Direction.ADD: ("ADD", "Finding added"),
    Direction.REMOVE: ("REMOVE", "Finding removed"),
    Direction.CHANGE: ("CHANGE", "Image changed"),
}
"""In our own coding scheme: the standard's derivations (PS3.16, CID 7203) include no generative edit."""

_LONGEST_TEXT, _LONGEST_STRING = 1024, 64
"""Characters of the value representations ST and LO (PS3.5, 6.2)."""


def path_of(record: TaskRecord, attempt: AttemptRecord) -> str:
    """Return the path of a successful edit's DICOM file, in the patient's folder; "" for any other attempt."""
    return f"{NAME}/{patient_id(record.image)}/{record.task_id}.dcm" if attempt.role == "success" else ""


def original_path(image: SourceImage) -> str:
    """Return the path of an original's DICOM file, in the patient's folder."""
    return f"{NAME}/{patient_id(image)}/original-{image.prepared_sha256[:16]}.dcm"


def patient_id(image: SourceImage) -> str:
    """Return the PatientID of an image: a hash of the source's patient or study, else of the image."""
    group = image.group or image.id.partition("+")[0]
    dataset = "" if group.startswith(JOINED) else image.dataset
    return f"plantain-{hashlib.sha256(f'{dataset}/{group}'.encode()).hexdigest()[:16]}"


def write_dicom(staging: Staging, released: ReleasedImages) -> None:
    """Write `dicom/PATIENT/TASK.dcm` and `dicom/PATIENT/original-HASH.dcm`: a study per patient, a series per task.

    An edit references its original if the release contains it.

    Raises:
        InputError: an edit is not a baseline JPEG, which only imported ones can be.
    """

    def edit(entry: StagedEntry) -> tuple[bytes, list[ReleaseFile]]:
        record = from_json(entry.record)
        attempt = record.attempts[entry.first]
        assert attempt.edited is not None
        image = released.read((attempt.edited, (record.task_id, attempt.round or 0)))
        original = record.image.prepared_sha256
        source = "" if staging.original(original) is None else _uid_of_original(staging, original)
        dataset = _edit(record, attempt, image, source)
        return _file(dataset, entry.path, image.listed(record.task_id, attempt, attempt.role, member=MEMBER))

    def original(entry: StagedEntry) -> tuple[bytes, list[ReleaseFile]]:
        recorded = original_of(staging, entry)
        image = released.read((recorded, None))
        uid = _uid_of_original(staging, recorded.sha256)
        dataset = _original(from_json(entry.record).image, image, uid)
        return _file(dataset, entry.path, image.listed(None, None, ORIGINAL, member=MEMBER))

    write_each(staging, NAME, edit)
    write_each(staging, ORIGINALS, original)


def jpeg_in(data: bytes, name: str) -> tuple[bytes, bool]:
    """Extract the JPEG from a DICOM file of this layout; return (JPEG, True if the file states to be synthetic).

    Args:
        data: bytes of the file, which need not be trusted.
        name: name of the file in messages.

    Raises:
        BadImage: it is not a DICOM file, or its pixel data is not one compressed frame.
    """
    from pydicom.encaps import get_frame

    from plantain.pixels.dicom.files import DAMAGE, read_dicom

    dataset = read_dicom(data, name)
    try:
        compressed = dataset.file_meta.TransferSyntaxUID.is_encapsulated
        frame = get_frame(dataset.PixelData, 0, number_of_frames=1) if compressed else b""
        synthetic = dataset.get("SyntheticData") == "YES"
    except DAMAGE as error:
        raise BadImage(f"{name}: its pixel data cannot be read ({one_line(str(error))[:120]})") from error
    if not frame.startswith(b"\xff\xd8"):
        raise BadImage(f"{name}: its pixel data is not a JPEG")
    # An odd number of bytes is padded (PS3.5, A.4).
    return (frame[:-1] if frame.endswith(b"\xff\xd9\0") else frame), synthetic


def _edit(record: TaskRecord, attempt: AttemptRecord, image: ReleasedImage, source: str) -> Dataset:
    """Return an edit; `source` is the SOP instance UID of its original, "" if that is not in the release."""
    from highdicom.sr import CodedConcept
    from pydicom import Dataset
    from pydicom.sr.codedict import codes
    from pydicom.uid import SecondaryCaptureImageStorage

    done = f"{record.direction.value} {record.finding}"
    instruction = " ".join((attempt.instruction or "not recorded").split())
    text = f"Synthetic, not for clinical use. Edited by instruction ({done}): {instruction}"[:_LONGEST_TEXT]
    stated = (record.task_id, str(attempt.generation), str(attempt.round), patient_id(record.image), text)
    uid = _uid("edit", __version__, image.sha256, source, *stated)
    dataset = _capture(record.image, image, (f"task {record.task_id}", uid), codes.DCM.SynthesizingEquipment)
    dataset.SyntheticData = "YES"
    dataset.ConversionType = "SYN"
    dataset.InstanceNumber = attempt.round or 1
    dataset.SeriesDescription = f"SYNTHETIC: {done}".replace("\\", "/")[:_LONGEST_STRING]
    dataset.ImageComments = "Synthetic, not for clinical use."
    dataset.DerivationDescription = text
    code, meaning = _CODES[record.direction]
    dataset.DerivationCodeSequence.insert(0, CodedConcept(code, "99PLANTAIN", meaning))
    if source:
        reference = Dataset()
        reference.ReferencedSOPClassUID = SecondaryCaptureImageStorage
        reference.ReferencedSOPInstanceUID = source
        purpose = codes.DCM.SourceImageForImageProcessingOperation
        reference.PurposeOfReferenceCodeSequence = [CodedConcept.from_code(purpose)]
        dataset.SourceImageSequence = [reference]
    return dataset


def _original(image: SourceImage, released: ReleasedImage, uid: str) -> Dataset:
    """Return an original as it was prepared."""
    from pydicom.sr.codedict import codes

    series = f"original {released.sha256}"
    dataset = _capture(image, released, (series, uid), codes.DCM.ProcessingEquipment)
    dataset.SyntheticData = "YES" if image.synthetic else "NO"
    dataset.ConversionType = "SYN" if image.synthetic else "WSD"
    dataset.SeriesDescription = "SYNTHETIC: original" if image.synthetic else "Original"
    dataset.DerivationDescription = "Prepared for editing: windowed to 8 bits, scaled, compressed."
    return dataset


def _capture(image: SourceImage, released: ReleasedImage, uids: tuple[str, str], purpose: object) -> Dataset:
    """Return what every instance states.

    Args:
        uids: name of the series, and the instance's UID.
        purpose: code of plantain's part in it.
    """
    from highdicom import ContributingEquipment
    from highdicom.sc import SCImage
    from highdicom.sr import CodedConcept
    from pydicom.encaps import encapsulate
    from pydicom.sr.codedict import codes
    from pydicom.uid import JPEGBaseline8Bit

    width, height, grey = _size(released)
    series, instance = uids
    patient = patient_id(image)
    dataset = SCImage(
        # highdicom would compress the pixels again: it gets a single one, and the JPEG is set below.
        pixel_array=np.zeros((1, 1) if grey else (1, 1, 3), np.uint8),
        # The one value for colour in baseline JPEG, however its chrominance is sampled (PS3.5, table 8.2.1-1).
        photometric_interpretation="MONOCHROME2" if grey else "YBR_FULL_422",
        bits_allocated=8,
        coordinate_system="PATIENT",
        patient_orientation=("L", "F"),
        study_instance_uid=_uid("study", patient),
        series_instance_uid=_uid("series", series),
        series_number=1 + int(hashlib.sha256(series.encode()).hexdigest()[:5], 16),
        sop_instance_uid=instance,
        instance_number=1,
        patient_id=patient,
        study_id=patient[-16:],
        manufacturer=_CREATOR,
        manufacturer_model_name=_CREATOR,
        software_versions=__version__,
        transfer_syntax_uid=JPEGBaseline8Bit,
        specific_character_set="ISO_IR 192",
    )
    for name in _CLOCK:
        dataset.pop(name, None)
    dataset.PixelData = encapsulate([released.data])
    dataset.Rows, dataset.Columns = height, width
    dataset.PatientOrientation = None  # unknown
    dataset.ImageType = ["DERIVED", "SECONDARY"]
    dataset.LossyImageCompression = "01"
    dataset.LossyImageCompressionMethod = "ISO_10918_1"
    raw = width * height * (1 if grey else 3)
    dataset.LossyImageCompressionRatio = f"{raw / len(released.data):.2f}"
    dataset.DerivationCodeSequence = [CodedConcept.from_code(codes.DCM.LossyCompression)]
    # In place of highdicom's own, which has a time.
    equipment = ContributingEquipment(
        _CREATOR, purpose, manufacturer_model_name=_CREATOR, software_versions=__version__
    )
    dataset.ContributingEquipmentSequence = [equipment]
    dataset.InstanceCreatorUID = _uid(_CREATOR)
    dataset.StudyDescription = "Research images, not for clinical use"
    dataset.PatientIdentityRemoved = "YES"
    dataset.DeidentificationMethod = "No attribute of the source is kept; PatientID is a hash"
    if image.text_checked:
        dataset.BurnedInAnnotation = "NO"  # without the attribute there may be some (PS3.3, C.7.6.1)
    if part := _BODY_PARTS.get(image.modality):
        dataset.BodyPartExamined = part
    if part not in _UNPAIRED:
        dataset.Laterality = {"left": "L", "right": "R"}.get(image.laterality, "")
    return dataset


def _file(dataset: Dataset, path: str, listed: ReleaseFile) -> tuple[bytes, list[ReleaseFile]]:
    """Return the bytes of a file, and its lines in the list of files: itself, and the image inside it."""
    dataset.file_meta.ImplementationClassUID = _uid(_CREATOR)
    dataset.file_meta.ImplementationVersionName = f"PLANTAIN_{__version__}"[:16]
    buffer = io.BytesIO()
    dataset.save_as(buffer, enforce_file_format=True)
    data = buffer.getvalue()
    whole = ReleaseFile(path, hashlib.sha256(data).hexdigest(), len(data), "shard")
    return data, [whole, replace(listed, path=path)]


def _uid_of_original(staging: Staging, sha256: str) -> str:
    return _uid("original", __version__, sha256, staging.described_original(sha256)[1].decode())


def _uid(*content: str) -> str:
    """Return a UID made of a UUID (PS3.5, B.2), which is a hash of the content (RFC 9562, version 5)."""
    return f"2.25.{uuid.uuid5(_NAMESPACE, chr(31).join(content)).int}"


def _size(image: ReleasedImage) -> tuple[int, int, bool]:
    """Return width, height, and whether it is grey. Raises InputError for other than baseline JPEG."""
    with PIL.Image.open(io.BytesIO(image.data)) as opened:
        if opened.format != "JPEG" or opened.mode not in ("RGB", "L") or opened.info.get("progressive"):
            raise InputError(
                f"--layout dicom: image {image.recorded.sha256[:16]} is not a baseline JPEG; choose other layouts"
            )
        return opened.width, opened.height, opened.mode == "L"


LAYOUT = Layout(write_dicom, path_of)
