"""What a Parquet file says of its columns so that `datasets` decodes its images."""

from __future__ import annotations

import orjson
import pyarrow as pa

from plantain.journal import JsonValue
from plantain.release.layouts.columns import IMAGE


def with_features(schema: pa.Schema) -> pa.Schema:
    """The schema with the key that makes `datasets` decode its images, also when it is read as plain Parquet."""
    features = {field.name: _feature(field.type) for field in schema}
    metadata = orjson.dumps({"info": {"features": features}})
    return schema.with_metadata({"huggingface": metadata})


def _feature(kind: pa.DataType) -> JsonValue:
    if kind == IMAGE:
        return {"_type": "Image"}
    if pa.types.is_list(kind):
        return [_feature(kind.value_type)]
    if pa.types.is_struct(kind):
        return {field.name: _feature(field.type) for field in kind}
    name = {"double": "float64"}.get(str(kind), str(kind))
    return {"dtype": name, "_type": "Value"}
