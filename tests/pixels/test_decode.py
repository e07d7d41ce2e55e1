from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

from pixels.pictures import colour, every_format, grey, png_bomb, save
from plantain.pixels.decode import BadImage, decode, decode_mask, decode_untrusted, one_line
from plantain.pixels.encode import encode_mask, encode_source

FILES = every_format()
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow on damaged tags


@pytest.mark.parametrize("kind", FILES)
def test_decode_untrusted_reads_every_format(kind: str) -> None:
    pixels = decode_untrusted(FILES[kind], "a")
    assert pixels.shape == (40, 60, 3)
    assert pixels.dtype == np.uint8
    assert pixels.flags.c_contiguous
    assert pixels.std() > 10


@pytest.mark.parametrize("kind", ["png colour", "bmp", "tiff", "tiff lzw", "webp"])
def test_decode_untrusted_lossless_is_exact(kind: str) -> None:
    assert np.array_equal(decode_untrusted(FILES[kind], "a"), colour())


@pytest.mark.parametrize("kind", ["jpeg grey", "jpeg colour", "jpeg progressive", "jpeg cmyk"])
def test_decode_untrusted_jpeg_agrees_with_pillow(kind: str) -> None:
    expected = np.asarray(Image.open(io.BytesIO(FILES[kind])).convert("RGB"))
    assert np.array_equal(decode_untrusted(FILES[kind], "a"), expected)


def test_decode_untrusted_lays_transparency_on_black() -> None:
    image = Image.new("RGBA", (3, 1))
    image.putdata([(255, 255, 255, 0), (255, 255, 255, 128), (200, 100, 50, 255)])
    # 255 * 128 / 255 = 128.
    assert decode_untrusted(save(image, "PNG"), "a").tolist() == [
        [[0, 0, 0], [128, 128, 128], [200, 100, 50]]
    ]


def test_decode_untrusted_transparent_palette_is_laid_on_black() -> None:
    image = Image.new("P", (2, 1))
    image.putpalette([255, 0, 0, 0, 255, 0])
    image.putdata([0, 1])
    assert decode_untrusted(save(image, "PNG", transparency=0), "a").tolist() == [[[0, 0, 0], [0, 255, 0]]]


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


def test_decode_untrusted_refuses_a_jpeg_of_a_thousand_passes() -> None:
    data = bytearray(save(Image.fromarray(colour(64, 64)), "JPEG", progressive=True))
    start = data.index(b"\xff\xc2")
    data[start + 5 : start + 9] = (6000).to_bytes(2, "big") * 2
    scan = data.index(b"\xff\xda")
    passes = bytes(data[scan : scan + 2 + int.from_bytes(data[scan + 2 : scan + 4], "big")]) * 1000
    with pytest.raises(BadImage, match=r"10\d\d scans over 6000x6000"):
        decode_untrusted(bytes(data[:scan]) + passes + bytes(data[scan:]), "slow.jpg")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty file"),
        (b"just words\n", "text, not an image"),
        (bytes(128) + b"DICM" + bytes(50), "DICOM"),
        (b"\0\0\0\x18ftypheic" + bytes(50), "HEIC"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "Git LFS"),
        (b"\xff\xd8\xff\xe0" + bytes(9), "damaged JPEG"),
        (bytes(range(256)), "not an image that we read"),
        (save(Image.fromarray(np.ones((4, 4), np.float32)), "TIFF"), "of kind F"),
        (save(Image.fromarray(np.array([[-5, 70000]], np.int32)), "TIFF"), "values from -5 to 70000"),
    ],
)
def test_decode_untrusted_says_what_is_wrong(data: bytes, says: str) -> None:
    with pytest.raises(BadImage, match=says) as caught:
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


@given(st.binary(max_size=2000))
def test_decode_untrusted_random_bytes_raise_only_bad_image(data: bytes) -> None:
    with pytest.raises(BadImage):
        decode_untrusted(data, "a")


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


@given(st.text(max_size=500))
def test_one_line_is_one_line(text: str) -> None:
    line = one_line(text)
    assert len(line.splitlines()) <= 1
    assert line.isprintable()
    assert len(line) <= 300
    line.encode()


def test_one_line_keeps_chinese_names() -> None:
    assert one_line("胸片 1.png") == "胸片 1.png"


def test_decode_refuses_a_damaged_blob() -> None:
    with pytest.raises(BadImage, match="damaged"):
        decode(b"")
    with pytest.raises(BadImage, match="damaged"):
        decode(b"\xff\xd8nothing")
    assert decode(encode_source(colour(64, 64))).shape == (64, 64, 3)


def test_decode_mask_returns_what_was_encoded() -> None:
    mask = grey() > 128
    assert np.array_equal(decode_mask(encode_mask(mask)), mask)
    assert Image.open(io.BytesIO(encode_mask(mask))).mode == "L"
