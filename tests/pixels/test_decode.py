from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
import tifffile
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageCms, ImageOps

from pixels.images import colour, every_format, grey, png_bomb, save
from plantain.pixels.decode import BadImage, colour_note, decode_mask, decode_output, decode_untrusted
from plantain.pixels.encode import encode_mask

FILES = every_format()
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow on damaged tags


@pytest.mark.parametrize("kind", FILES)
def test_decode_untrusted_reads_every_format(kind: str) -> None:
    pixels = decode_untrusted(FILES[kind], "a")
    assert pixels.shape == (40, 60, 3)
    assert pixels.dtype == np.uint8
    assert pixels.flags.c_contiguous
    assert pixels.std() > 10


@pytest.mark.parametrize("kind", sorted(FILES.keys() - {"png alpha", "png 16 bit", "tiff 16 bit"}))
def test_decode_untrusted_agrees_with_pillow(kind: str) -> None:
    expected = np.asarray(Image.open(io.BytesIO(FILES[kind])).convert("RGB"))
    assert np.array_equal(decode_untrusted(FILES[kind], "a"), expected)


def test_decode_untrusted_lays_transparency_on_black() -> None:
    image = Image.new("RGBA", (3, 1))
    image.putdata([(255, 255, 255, 0), (255, 255, 255, 128), (200, 100, 50, 255)])
    # 255 * 128 / 255 = 128.
    assert decode_untrusted(save(image, "PNG"), "a").tolist() == [
        [[0, 0, 0], [128, 128, 128], [200, 100, 50]]
    ]


@pytest.mark.parametrize(("top", "shift"), [(255, 0), (256, 1), (4095, 4), (65535, 8)])
def test_decode_untrusted_scales_16_bit_by_bits_in_use(top: int, shift: int) -> None:
    values = np.array([[0, top // 2, top]], np.uint16)
    got = decode_untrusted(save(Image.fromarray(values), "PNG"), "a")
    assert got[0, :, 0].tolist() == (values[0] >> shift).tolist()


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF"])
@pytest.mark.parametrize("make", [grey, colour])
def test_decode_untrusted_honours_exif_orientation(orientation: int, kind: str, make: object) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = save(Image.fromarray(make()), kind, exif=exif)  # type: ignore[operator]
    expected = ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB")
    assert np.array_equal(decode_untrusted(data, "a"), np.asarray(expected))


def test_decode_untrusted_refuses_a_bomb_by_its_header() -> None:
    with pytest.raises(BadImage, match="900 million pixels, refused undecoded"):
        decode_untrusted(png_bomb(30_000, 30_000), "bomb.png")
    with pytest.raises(BadImage, match="9000x9000 pixels, refused undecoded"):
        decode_untrusted(png_bomb(9_000, 9_000), "bomb.png")


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "empty file"),
        (bytes(128) + b"DICM" + bytes(50), "DICOM"),
        (b"\xff\xd8\xff\xe0" + bytes(9), "damaged: its header"),
        (bytes(range(256)), "not an image that we read"),
        (FILES["png grey"].replace(b"IDAT", b"IDAT\0"), "checksum"),  # PNG, 13.1
    ],
)
def test_decode_untrusted_names_the_fault(data: bytes, complaint: str) -> None:
    with pytest.raises(BadImage, match=complaint) as caught:
        decode_untrusted(data, "folder/x.jpg")
    assert str(caught.value).startswith("folder/x.jpg: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP", "TIFF"])
def test_decode_untrusted_refuses_several_frames(kind: str) -> None:
    frames = [Image.fromarray(colour(seed=k)) for k in range(3)]
    data = save(frames[0], kind, save_all=True, append_images=frames[1:])
    with pytest.raises(BadImage, match="several frames"):
        decode_untrusted(data, "a")


@given(st.sampled_from(sorted(FILES)), st.floats(0, 1))
def test_decode_untrusted_cut_file_is_refused_or_whole(kind: str, share: float) -> None:
    data = FILES[kind]
    try:
        pixels = decode_untrusted(data[: int(share * len(data))], "a")
    except BadImage:
        return
    assert np.array_equal(pixels, decode_untrusted(data, "a"))


@given(
    st.sampled_from(sorted(FILES)),
    st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), min_size=1, max_size=20),
    st.booleans(),
)
def test_decode_untrusted_flipped_bytes_raise_only_bad_image(
    kind: str, flips: list[tuple[float, int]], early: bool
) -> None:
    data = bytearray(FILES[kind])
    for share, value in flips:
        # Half of the examples damage the headers, where the parsers are.
        data[int(share * (min(len(data), 300) if early else len(data)))] = value
    try:
        pixels = decode_untrusted(bytes(data), "a")
    except BadImage as error:
        assert "\n" not in str(error)
        return
    assert pixels.ndim == 3
    assert pixels.shape[2] == 3
    assert pixels.dtype == np.uint8


def test_decode_mask_returns_what_was_encoded() -> None:
    mask = grey() > 128
    assert np.array_equal(decode_mask(encode_mask(mask)), mask)
    assert Image.open(io.BytesIO(encode_mask(mask))).mode == "L"


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize(("bits", "top"), [(8, 255), (16, 4095), (16, 65535)])
def test_decode_untrusted_inverts_tiff_where_white_is_zero(bits: int, top: int, order: str) -> None:
    """TIFF 6.0, PhotometricInterpretation: 0 is WhiteIsZero; written by tifffile."""
    black_is_zero = (np.linspace(0, top, 64 * 64).reshape(64, 64)).astype(f"{order}u{bits // 8}")
    stored = io.BytesIO()
    tifffile.imwrite(stored, top - black_is_zero, photometric="miniswhite", byteorder=order)
    got = decode_untrusted(stored.getvalue(), "a.tif")[..., 0]
    assert np.array_equal(got, black_is_zero.astype(int) >> (top.bit_length() - 8))


def test_decode_untrusted_inverts_packed_12_bit_tiff() -> None:
    """Tags and packing by hand after TIFF 6.0: levels 0 and 0xFFF, two to three bytes, WhiteIsZero."""
    tags = ((256, 2), (257, 1), (258, 12), (259, 1), (262, 0), (273, 8), (277, 1), (278, 1), (279, 3))
    entries = b"".join(struct.pack(">HHIHH", tag, 3, 1, value, 0) for tag, value in tags)
    data = struct.pack(">2sHI", b"MM", 42, 12) + b"\x00\x0f\xff\0"
    data += struct.pack(">H", len(tags)) + entries + bytes(4)
    assert decode_untrusted(data, "a.tif")[0, :, 0].tolist() == [255, 0]


@pytest.mark.parametrize("level", [11, 40, 255])
def test_decode_output_is_the_same_in_any_bit_depth(level: int) -> None:
    eight = np.arange(level + 1, dtype=np.uint8)[None]
    cut = (eight / np.float32(255) * np.float32(65535)).astype(np.uint16)  # rounded down
    factors = (1, 256, 257, *((16,) if level > 15 else ()))  # so dark a 12-bit edit looks like 8 bits
    for values in (eight, cut, *(eight * np.uint16(factor) for factor in factors)):
        assert np.array_equal(decode_output(save(Image.fromarray(values), "PNG"))[..., 0], eight)
        if values.dtype == np.uint16:
            colours = tiff(np.dstack([values] * 3), photometric="rgb")
            assert np.array_equal(decode_output(colours)[..., 0], eight)
    few = np.arange(0, 256, 4, dtype=np.uint16)[None]  # 64 greys of 8 bits, in a file of 16
    assert np.array_equal(decode_output(save(Image.fromarray(few), "PNG"))[..., 0], few)
    brighter = save(Image.fromarray(np.array([[0, 1000, 2100]], np.uint16)), "PNG")
    # v // 8, as its original is shown
    assert decode_output(brighter, bits=11)[0, :, 0].tolist() == [0, 125, 255]


def _profile(name: bytes, gamma: float, primaries: tuple[tuple[float, float, float], ...]) -> bytes:
    """Return an ICC matrix profile, version 2.1 (ICC.1:2001-04), of one gamma and three primaries in XYZ under D50."""
    points = [b"XYZ \0\0\0\0" + struct.pack(">3i", *(round(65536 * v) for v in one)) for one in primaries]
    curve = b"curv\0\0\0\0" + struct.pack(">IH", 1, round(256 * gamma)) + b"\0\0"
    title = b"desc\0\0\0\0" + struct.pack(">I", len(name) + 1) + name + bytes(79)
    white = b"XYZ \0\0\0\0" + struct.pack(">3i", 63190, 65536, 54061)
    parts = dict(zip((b"rXYZ", b"gXYZ", b"bXYZ"), points, strict=True)) | dict.fromkeys(
        (b"rTRC", b"gTRC", b"bTRC"), curve
    )
    parts |= {b"desc": title + bytes(-len(title) % 4), b"wtpt": white, b"cprt": b"text\0\0\0\0none\0\0\0\0"}
    at, table, body = 132 + 12 * len(parts), b"", b""
    for tag, part in parts.items():
        table += tag + struct.pack(">2I", at + len(body), len(part))
        body += part
    head = struct.pack(
        ">I4sI4s4s4s12s4s", at + len(body), b"lcms", 0x2100000, b"mntr", b"RGB ", b"XYZ ", b"", b"acsp"
    )
    head += bytes(28) + struct.pack(">3i", 63190, 65536, 54061)
    return head.ljust(128, b"\0") + struct.pack(">I", len(parts)) + table + body


ADOBE_RGB = _profile(
    b"Jane Roe's Adobe RGB",
    563 / 256,
    ((0.60974, 0.31111, 0.01947), (0.20528, 0.62567, 0.06087), (0.14919, 0.06322, 0.74457)),
)


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "JPEG", "WEBP"])
@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_decode_untrusted_converts_a_colour_profile_as_littlecms_does(kind: str, mode: str) -> None:
    if (kind, mode) == ("JPEG", "RGBA"):
        return
    options = {"JPEG": {"quality": 100, "subsampling": 0}, "WEBP": {"lossless": True}}.get(kind, {})
    data = save(Image.fromarray(colour()).convert(mode), kind, icc_profile=ADOBE_RGB, **options)
    source, srgb = ImageCms.ImageCmsProfile(io.BytesIO(ADOBE_RGB)), ImageCms.createProfile("sRGB")
    expected = ImageCms.profileToProfile(Image.open(io.BytesIO(data)).convert("RGB"), source, srgb, 1)
    assert np.abs(decode_untrusted(data, "a").astype(int) - np.asarray(expected)).max() <= (
        1 if kind == "JPEG" else 0
    )
    assert np.abs(np.asarray(expected).astype(int) - colour()).max() > 5
    assert colour_note(data) == "colours converted to sRGB from Adobe RGB"


def test_decode_untrusted_leaves_srgb_and_shows_png_gamma() -> None:
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    data = save(Image.fromarray(colour()), "PNG", icc_profile=srgb)
    assert np.array_equal(decode_untrusted(data, "a"), colour())
    assert colour_note(data) == ""
    plain = save(Image.fromarray(np.full((2, 2), 64, np.uint8)), "PNG")
    chunk = b"gAMA" + struct.pack(">I", 100_000)
    linear = plain[:33] + struct.pack(">I", 4) + chunk + struct.pack(">I", zlib.crc32(chunk)) + plain[33:]
    # PNG, third edition, 13.13: display = sample ** (1 / (1.0 * 2.2)); (64 / 255) ** (1 / 2.2) * 255 = 136.0.
    assert decode_untrusted(linear, "a")[0, 0].tolist() == [136, 136, 136]
    assert colour_note(linear) == "colours converted to sRGB from gamma 1"


def _with_chunks(pixels: np.ndarray, **chunks: bytes) -> bytes:
    """Return a PNG with these chunks before its pixels."""
    data = save(Image.fromarray(pixels), "PNG")
    made = b"".join(
        struct.pack(">I", len(body))
        + name.encode()
        + body
        + struct.pack(">I", zlib.crc32(name.encode() + body))
        for name, body in chunks.items()
    )
    return data[:33] + made + data[33:]


def _adobe_exif(index: str, space: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 1
    exif.get_ifd(0x8769)[0xA001] = space
    exif.get_ifd(0x8769)[0xA005] = exif._ifds[0xA005] = {1: index}
    return save(Image.fromarray(colour()), "PNG", exif=exif)


# of white, red, green and blue
ADOBE = struct.pack(">8I", 31270, 32900, 64000, 33000, 21000, 71000, 15000, 6000)
ADOBE_CHUNKS = {"gAMA": struct.pack(">I", round(100_000 * 256 / 563)), "cHRM": ADOBE}


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (_adobe_exif("R03", 0xFFFF), "EXIF states Adobe RGB"),  # DCF 2.0
        (_adobe_exif("R98", 2), "EXIF states Adobe RGB"),
        (_adobe_exif("R98", 0xFFFF), ""),
        (_with_chunks(colour(), **ADOBE_CHUNKS), "its cHRM chunk states other primaries"),
        (_with_chunks(colour(), sRGB=b"\0", **ADOBE_CHUNKS), ""),
    ],
)
def test_colours_of_another_space_without_a_profile_are_refused(data: bytes, fault: str) -> None:
    if fault:
        with pytest.raises(BadImage, match=fault):
            decode_untrusted(data, "a")
    else:
        assert np.array_equal(decode_untrusted(data, "a"), colour())


def tiff(values: np.ndarray, **options: object) -> bytes:
    data = io.BytesIO()
    tifffile.imwrite(data, values, **options)
    return data.getvalue()


@pytest.mark.parametrize("orientation", [1, 3, 6])
@pytest.mark.parametrize("shift", [0, 4, 8])
@pytest.mark.parametrize("order", ["<", ">"])
def test_colours_of_16_bits_keep_the_levels_of_8_12_or_16_bits(
    orientation: int, shift: int, order: str
) -> None:
    deep, tag = colour().astype(np.uint16) << shift, (274, "H", 1, orientation, True)
    data = tiff(deep, photometric="rgb", byteorder=order, extratags=[tag])
    eight = tiff(colour(), photometric="rgb", extratags=[tag])
    assert np.array_equal(decode_untrusted(data, "a"), decode_untrusted(eight, "a"))


@pytest.mark.parametrize("white", [False, True])
@pytest.mark.parametrize("kind", ["<f4", ">f4", "<f8"])
@pytest.mark.parametrize("scale", [1 / 255, 1.0])
def test_floats_from_0_to_1_and_whole_numbers_are_read(white: bool, kind: str, scale: float) -> None:
    """scikit-image writes floating point from 0 to 1; whole numbers are integers in another type."""
    plane = np.arange(256, dtype=np.uint8).reshape(16, 16)
    stored, photometric = (255 - plane, "miniswhite") if white else (plane, "minisblack")
    data = tiff((stored * scale).astype(kind), photometric=photometric, byteorder=kind[0])
    assert np.array_equal(decode_untrusted(data, "a")[..., 0], plane)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (
            tiff(np.array([[0.5, 300.0]], np.float32)),
            "values from 0.5 to 300; floating point is read from 0 to 1",
        ),
        (tiff(np.array([[0.5, np.nan]], np.float32)), "values from nan to nan"),
        (tiff(np.array([[0.5, 1.0]], np.float16)), "a TIFF of a kind that we do not read"),
        (tiff(np.array([[-5, 5]], np.int8)), "signed 8-bit"),
        (tiff(np.zeros((4, 4, 3), np.uint8), photometric="cielab"), "pixels of kind LAB"),
        (
            tiff(np.zeros((3, 4, 4), np.uint16), photometric="rgb", planarconfig="separate"),
            "16-bit colours in separate planes",
        ),
    ],
)
def test_ambiguous_values_are_refused(data: bytes, why: str) -> None:
    with pytest.raises(BadImage, match=rf"^a: {why}"):
        decode_untrusted(data, "a")
