"""A layout of its own: successes by finding with a metadata.csv, as `load_dataset("imagefolder")` reads them."""

from collections.abc import Iterator

from plantain.files.tables import written_csv
from plantain.release.layouts.contract import Layout, write_images
from plantain.release.naming import safe
from plantain.release.plan import ReleaseFile
from plantain.release.released_images import ReleasedImages
from plantain.release.staging import HashingFile, Staging
from plantain.release.task_record import AttemptRecord, TaskRecord, from_json

NAME = "imagefolder"


def path_of(record: TaskRecord, attempt: AttemptRecord) -> str:
    return f"{NAME}/{safe(record.finding)}/{record.task_id}.jpeg" if attempt.role == "success" else ""


def write(staging: Staging, released: ReleasedImages) -> None:
    write_images(staging, released, NAME)

    def metadata(file: HashingFile) -> Iterator[ReleaseFile]:
        file.write(b"file_name,finding,instruction\n")
        for folder in staging.folders():
            for line, paths in staging.records_with_paths(NAME, folder):
                record = from_json(line)
                for index, path in paths.items():
                    row = (path.removeprefix(f"{NAME}/"), record.finding, record.attempts[index].instruction)
                    file.write(written_csv([row]).encode())
        return iter(())

    staging.write(f"{NAME}/metadata.csv", "record", metadata)


LAYOUT = Layout(write, path_of)
