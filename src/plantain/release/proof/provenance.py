"""C2PA manifests in released images.

Every edited file has the constant XMP mark (`pixels.encode`). A signed manifest is added on request; it names task,
round and tool, and has no thumbnail and no ingredient, so it contains nothing of the source image.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from plantain.files.installed import install_line
from plantain.pixels.encode import encode_jpeg
from plantain.records import InputError
from plantain.release.plan import ExportOptions
from plantain.version import __version__

SOURCE_TYPE = "http://cv.iptc.org/newscodes/digitalsourcetype/compositeSynthetic"
"""The same IPTC term as in the XMP mark: true of rendered and of generated edits."""

ASSERTION = "org.plantain.attempt"

_SETTINGS = {"builder": {"thumbnail": {"enabled": False}}, "verify": {"verify_after_sign": False}}
"""The library's default embeds images of the source, which would publish restricted ones."""

_ALGORITHMS = ("ES256", "ES384", "ES512", "PS256")
"""Of ECDSA keys by curve, and of RSA; the key's own is the one whose signature validates."""


class C2paSigner:
    """Sign released JPEGs with one certificate chain; thread-safe."""

    def __init__(self, chain: bytes, key: bytes, algorithm: str) -> None:
        import c2pa

        info = c2pa.C2paSignerInfo(c2pa.C2paSigningAlg[algorithm], chain, key, None)
        self._signer = c2pa.Signer.from_info(info)
        self._context = c2pa.Context(c2pa.Settings.from_dict(_SETTINGS))

    def sign(self, jpeg: bytes, task: str, round: int) -> bytes:
        """Add a signed manifest, which names the task and round, to a JPEG; the bytes differ every time.

        Raises:
            InputError: signing failed.
        """
        import c2pa

        signed = io.BytesIO()
        try:
            builder = c2pa.Builder(_manifest(task, round), self._context)
            builder.sign(self._signer, "image/jpeg", io.BytesIO(jpeg), signed)
        except c2pa.C2paError as error:
            raise InputError(f"--sign: the image of task {task} cannot be signed: {error}") from error
        return signed.getvalue()


def open_signer(options: ExportOptions) -> C2paSigner:
    """Make the signer of an export, and test it once.

    Raises:
        InputError: certificate or key cannot be read or used, or c2pa-python is not installed.
    """
    assert options.sign_cert is not None and options.sign_key is not None
    chain, key = _read(options.sign_cert, "--sign"), _read(options.sign_key, "--key")
    try:
        import c2pa
    except ImportError as error:
        raise InputError(f"--sign needs c2pa-python: {install_line('release')}") from error
    needed = (
        "one PEM file with a leaf certificate that has key usage digitalSignature and extended key usage "
        "emailProtection, and its intermediates below it"
    )
    faults = []
    for algorithm in _ALGORITHMS:
        try:
            signer = C2paSigner(chain, key, algorithm)
            trial = signer.sign(encode_jpeg(np.zeros((16, 16, 3), np.uint8)), "trial", 0)
        except (c2pa.C2paError, InputError) as error:
            faults.append(str(error))
            continue
        if signed_attempt(trial)[0] in ("Valid", "Trusted"):
            return signer
        faults.append(f"its signature does not validate; does {options.sign_key.name} belong to it?")
    fault = next((fault for fault in faults if "unsupported private key" not in fault), faults[0])
    raise InputError(f"{options.sign_cert}: cannot be signed with: {fault} (needed: {needed})")


def signed_attempt(jpeg: bytes) -> tuple[str, str | None, int | None]:
    """Check a JPEG's manifest; return (state, task, round), None for a task or round that it does not name.

    The state is "Trusted", "Valid" (signed by an unknown signer), "Invalid", or "none".
    """
    import c2pa

    try:
        with c2pa.Reader("image/jpeg", io.BytesIO(jpeg)) as reader:
            state = str(reader.get_validation_state())
            details = json.loads(reader.json())
    except c2pa.C2paError as error:
        return ("none" if "ManifestNotFound" in str(error) else "Invalid"), None, None
    active = details.get("manifests", {}).get(details.get("active_manifest"), {})
    for assertion in active.get("assertions", []):
        if assertion.get("label") == ASSERTION:
            data = assertion.get("data", {})
            return state, data.get("task"), data.get("round")
    return state, None, None


def without_manifest(jpeg: bytes) -> bytes:
    """Remove the C2PA manifest from a JPEG, inverting `sign`; other files are returned unchanged."""
    kept: list[bytes] = []
    after = 0
    for start, size in _jpeg_manifests(io.BytesIO(jpeg)) if jpeg[:2] == b"\xff\xd8" else ():
        kept.append(jpeg[after:start])
        after = start + 2 + size
    return b"".join((*kept, jpeg[after:])) if kept else jpeg


def _jpeg_manifests(file: BinaryIO) -> Iterator[tuple[int, int]]:
    """Yield offsets of the APP11 segments with JUMBF boxes, and their sizes without the marker."""
    at = 2
    while True:
        file.seek(at)
        header = file.read(10)
        if len(header) < 10 or header[0] != 0xFF or header[1] in (0xDA, 0xD9):
            return
        size = max(int.from_bytes(header[2:4], "big"), 2)
        if header[1] == 0xEB and header[4:6] == b"JP":
            yield at, size
        at += 2 + size


def _manifest(task: str, round: int) -> str:
    created = {"action": "c2pa.created", "digitalSourceType": SOURCE_TYPE}
    details = {"task": task, "round": round, "not_for_clinical_use": True}
    return json.dumps(
        {
            "claim_generator_info": [{"name": "plantain", "version": __version__}],
            "title": f"{task}-{round}.jpeg",
            "assertions": [
                {"label": "c2pa.actions.v2", "data": {"actions": [created]}},
                {"label": ASSERTION, "data": details},
            ],
        }
    )


def _read(path: Path, option: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{option} {path}: cannot be read: {error.strerror}") from error
