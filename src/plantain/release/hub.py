"""Whether a release would do well as a dataset repository: what the Hub checks on a push, and what its viewer needs.

The Hub's own validation is a service. Offline there are the parsers of `huggingface_hub` and `datasets`, which read the
card as the Hub does, their lists of allowed values, and the limits that the Hub's documentation states.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import orjson
import pyarrow.parquet as pq

from plantain.models.extras import require_extra
from plantain.records.counts import counted

FILES_AT_MOST, IN_A_FOLDER_AT_MOST = 100_000, 10_000
LARGEST_FILE, LARGEST_ROW_GROUP = 50_000_000_000, 300_000_000
"""As documented: entries of a repository, and of a folder; bytes of a file, and of a row group that a viewer reads."""

_PICTURES = {"image", "original", "edited", "mask"}

ATTRIBUTES = ".gitattributes"
ATTRIBUTES_TEXT = b"".join(
    b"%s filter=lfs diff=lfs merge=lfs -text\n" % pattern
    for pattern in (b"*.parquet", b"*.tar", b"*.jpeg", b"*.jpg", b"*.png", b"*.jsonl")
)
"""What the Hub stores apart from its Git history."""


def hub_problems(out: Path) -> list[str]:
    """What a push would be refused for or the viewer could not show, a line each; nothing is asked of a network.

    Raises:
        InputError: `datasets` and `huggingface_hub` are not installed.
    """
    require_extra("plantain export --hub-folder", "release", "datasets")
    os.environ["HF_HUB_OFFLINE"] = os.environ["HF_DATASETS_OFFLINE"] = "1"
    return [*_card(out), *_files(out), *_tables(out)]


def _card(out: Path) -> Iterator[str]:
    """The card's metadata, by the Hub's parsers and their lists of values."""
    import yaml  # type: ignore[import-untyped]
    from datasets import utils
    from datasets.utils.metadata import MetadataConfigs
    from huggingface_hub import DatasetCard

    resources = Path(str(utils.__file__)).parent / "resources"
    try:
        data = DatasetCard.load(out / "README.md", ignore_metadata_errors=False).data
        MetadataConfigs.from_dataset_card_data(data)
    except (ValueError, TypeError, OSError, yaml.YAMLError) as error:
        yield f"README.md: its metadata cannot be read: {' '.join(str(error).split())[:300]}"
        return
    found = data.to_dict()
    for field, file in (("size_categories", "size_categories.json"), ("language", "languages.json")):
        known = set(orjson.loads((resources / file).read_bytes()))
        for value in found.get(field) or ["(none)"]:
            if value not in known:
                yield f"README.md: {field}: {value!r} is none of the Hub's"
    if found.get("license") == "other" and not (found.get("license_name") and found.get("license_link")):
        yield "README.md: license: other needs license_name and license_link"
    if not found.get("license"):
        yield "README.md: license is missing"
    link = str(found.get("license_link", ""))
    if link and "://" not in link and not (out / link).is_file():
        yield f"README.md: license_link: {link} is not there"


def _files(out: Path) -> Iterator[str]:
    """Numbers and sizes, as the Hub's documentation limits them."""
    folders: Counter[Path] = Counter()
    for path in out.rglob("*"):
        folders[path.parent] += 1
        if path.is_file() and path.stat().st_size > LARGEST_FILE:
            yield f"{path.relative_to(out)}: {path.stat().st_size:,} bytes; a file may have {LARGEST_FILE:,}"
    for folder, entries in sorted(folders.items()):
        if entries > IN_A_FOLDER_AT_MOST:
            yield (
                f"{folder.relative_to(out)}: {counted(entries, 'entry', 'entries')}; a folder may have "
                f"{IN_A_FOLDER_AT_MOST:,}"
            )
    if (total := sum(folders.values())) > FILES_AT_MOST:
        yield f"{total:,} files and folders; a repository may have {FILES_AT_MOST:,}: leave out the layout med-banana"


def _tables(out: Path) -> Iterator[str]:
    """Every table as `load_dataset` and the viewer open it: the files that match, their features, their row groups."""
    import datasets

    try:
        names = datasets.get_dataset_config_names(str(out)) if (out / "data").is_dir() else []
    except (ValueError, OSError) as error:
        yield f"its tables cannot be listed: {' '.join(str(error).split())[:300]}"
        return
    if not names:
        yield "no table: the viewer needs the layout parquet"
    with tempfile.TemporaryDirectory(prefix="plantain-hub-") as cache:
        for name in names:
            try:
                features = datasets.load_dataset_builder(str(out), name, cache_dir=cache).info.features or {}
            except (ValueError, OSError) as error:
                yield f"table {name}: cannot be opened: {' '.join(str(error).split())[:300]}"
                continue
            for column in sorted(_PICTURES & set(features)):
                if not isinstance(features[column], datasets.Image):
                    yield f"table {name}: column {column} would not be shown as a picture"
    for path in sorted(out.glob("data/*/*.parquet")):
        metadata = pq.read_metadata(path)
        largest = max(
            (metadata.row_group(n).total_byte_size for n in range(metadata.num_row_groups)), default=0
        )
        if largest > LARGEST_ROW_GROUP:
            yield f"{path.relative_to(out)}: a row group of {largest:,} bytes; the viewer reads {LARGEST_ROW_GROUP:,}"
