"""What a call costs our processor: plantain's whole path beside the provider's bare SDK, on the same fake provider.

The fake runs in a process of its own and answers at once. Ours is a whole build: walk, loop, prompts, adapter, SDK,
admission, money, journal with FULL sync. The bare SDK sends the same pictures and texts of the same length and reads the
answers. Work on the pixels of an edited image (decode, check, encode as released) is part of no SDK: it is measured and
stated apart. Beside them, where aiohttp is installed: the same requests posted with it, the answers parsed.

Target: at most 1.5 times the bare SDK, pixels apart.

Run: python benchmarks/overhead.py [--tasks 100]
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import importlib.util
import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import skimage.data

from bookkeeping import source_image
from plantain.build.recipe import Recipe
from plantain.build.run import run_build
from plantain.journal import JournalReader
from plantain.pixels.encode import encode_source, normalise
from plantain.pixels.prepare import prepare
from plantain.sources.catalogue import Catalogue
from simulated.serve import serving

CONCURRENCY = 16
MODELS = {
    "gemini": ("gemini/gemini-3.8-flash", "gemini/gemini-3.1-flash-image"),
    "openai": ("openai/gpt-5", "openai/gpt-image-1.5"),
}
Send = Callable[[str], Awaitable[object]]


def catalogue_of(folder: Path, count: int) -> tuple[Path, bytes]:
    """Crops of one photograph, and the first of them as bytes."""
    retina = skimage.data.retina()
    first = b""
    with Catalogue.create(folder / "catalogue") as catalogue:
        for i in range(count):
            pixels, _ = prepare(retina[: 1411 - i, i:])
            data = encode_source(pixels)
            first = first or data
            image = source_image(_digest(data))
            catalogue.add(_named(image, f"retina-{i}"), data)
    return folder / "catalogue", first


def _digest(data: bytes) -> str:
    import hashlib

    return hashlib.sha256(data).hexdigest()


def _named(image: object, name: str) -> object:
    from dataclasses import replace

    return replace(image, id=name)  # type: ignore[type-var]


def whole_path(provider: str, url: str, catalogue: Path, run: Path) -> tuple[float, dict[str, int], bytes]:
    """CPU seconds of a build, its calls by step, and one edited image as it came."""
    words, pictures = MODELS[provider]
    address = url if provider == "gemini" else f"{url}/v1"
    recipe = Recipe.model_validate(
        {
            "name": "overhead",
            "data": {"catalogue": catalogue, "findings": ["AMD"], "directions": ["add"]},
            "models": {"writer": words, "editor": pictures, "judge": words},
            "limits": {"concurrency": CONCURRENCY},
            "providers": {provider: {"base_url": address}},
        }
    )
    begun = time.process_time()
    summary = asyncio.run(run_build(recipe, run))
    spent = time.process_time() - begun
    assert summary.stopped is None, summary.stopped
    with JournalReader.open(run) as reader:
        steps = dict(reader.connection.execute("SELECT step, count(*) FROM call GROUP BY step").fetchall())
        raw = next(a.raw for a in reader.all_attempts() if a.raw)
        return spent, steps, reader.read_blob(raw)


PROMPT = "Judge this edit of a medical image by four criteria, and say what you see. " * 40


def bare_gemini(url: str, key: str, image: bytes) -> Send:
    from google import genai
    from google.genai import types

    client = genai.Client(
        api_key=key, http_options=types.HttpOptions(base_url=url, timeout=60_000, api_version="v1beta")
    )

    async def send(step: str) -> object:
        pictures = [types.Part.from_bytes(data=image, mime_type="image/jpeg")] * (2 if step == "judge" else 1)
        config = types.GenerateContentConfig(
            response_modalities=["TEXT", "IMAGE"] if step == "edit" else None,
            response_mime_type="application/json" if step == "judge" else None,
            response_json_schema={"type": "object"} if step == "judge" else None,
        )
        text = PROMPT if step != "edit" else PROMPT[:200]
        return await client.aio.models.generate_content(
            model="m", contents=[*pictures, types.Part.from_text(text=text)], config=config
        )

    return send


def bare_openai(url: str, key: str, image: bytes) -> Send:
    from openai import AsyncOpenAI

    client = AsyncOpenAI(api_key=key, base_url=f"{url}/v1", max_retries=0, timeout=60.0)

    async def send(step: str) -> object:
        if step == "edit":
            return await client.images.edit(
                model="m", image=("image.jpg", image, "image/jpeg"), prompt=PROMPT[:200]
            )
        data = f"data:image/jpeg;base64,{base64.b64encode(image).decode()}"
        picture = {"type": "input_image", "image_url": data, "detail": "high"}
        content = [{"type": "input_text", "text": PROMPT}, *[picture] * (2 if step == "judge" else 1)]
        schema = {"type": "json_schema", "name": "report", "schema": {"type": "object"}, "strict": False}
        more = {"text": {"format": schema}} if step == "judge" else {}
        return await client.responses.create(
            model="m",
            input=[{"role": "user", "content": content}],  # type: ignore[arg-type,misc,list-item]
            **more,  # type: ignore[arg-type]
        )

    return send


async def aiohttp_gemini(url: str, key: str, image: bytes, steps: dict[str, int]) -> float:
    """CPU seconds of the same requests with aiohttp."""
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=CONCURRENCY)) as session:

        async def send(step: str) -> object:
            part = {"inlineData": {"mimeType": "image/jpeg", "data": base64.b64encode(image).decode()}}
            body: dict[str, object] = {
                "contents": [
                    {"role": "user", "parts": [*[part] * (2 if step == "judge" else 1), {"text": PROMPT}]}
                ]
            }
            if step != "write":
                body["generationConfig"] = (
                    {"responseModalities": ["IMAGE"]} if step == "edit" else {"responseJsonSchema": {}}
                )
            async with session.post(
                f"{url}/v1beta/models/m:generateContent", json=body, headers={"x-goog-api-key": key}
            ) as answer:
                assert answer.status == 200
                return json.loads(await answer.read())

        return await drive(send, steps)


async def drive(send: Send, steps: dict[str, int]) -> float:
    """CPU seconds of so many calls of each step."""
    await send("write")  # connections and imports
    slots = asyncio.Semaphore(CONCURRENCY)

    async def one(step: str) -> None:
        async with slots:
            await send(step)

    begun = time.process_time()
    await asyncio.gather(*(one(step) for step, count in sorted(steps.items()) for _ in range(count)))
    return time.process_time() - begun


def pixel_work(raw: bytes, times: int = 20) -> float:
    """CPU seconds of bringing one edited image to its released form."""
    begun = time.process_time()
    for _ in range(times):
        normalise(raw)
    return (time.process_time() - begun) / times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=100)
    args = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory(prefix="plantain-bench-") as name, serving() as (url, key):
        os.environ |= {"GEMINI_API_KEY": key, "OPENAI_API_KEY": key}
        folder = Path(name)
        catalogue, image = catalogue_of(folder, args.tasks)
        for provider, bare in (("gemini", bare_gemini), ("openai", bare_openai)):
            whole_path(provider, url, catalogue_of(folder / provider, 3)[0], folder / provider / "warm")
            spent, steps, raw = whole_path(provider, url, catalogue, folder / f"{provider}-run")
            calls = sum(steps.values())
            pixels = pixel_work(raw) * steps["edit"]
            peer = asyncio.run(_drive_bare(bare, url, key, image, steps))
            ratio = (spent - pixels) / peer
            good &= ratio <= 1.5
            print(
                f"{provider}: {calls} calls ({', '.join(f'{n} {s}' for s, n in sorted(steps.items()))}), pictures of "
                f"{len(image) / 1e3:.0f} kB\n"
                f"  plantain, whole path   {1000 * spent / calls:6.2f} ms CPU per call, of it pixels "
                f"{1000 * pixels / calls:.2f}\n"
                f"  bare SDK               {1000 * peer / calls:6.2f} ms CPU per call\n"
                f"  plantain over the SDK  {ratio:6.2f}x, pixels apart (target 1.50x); {spent / peer:.2f}x with them",
                flush=True,
            )
            if provider == "gemini" and importlib.util.find_spec("aiohttp"):
                other = asyncio.run(aiohttp_gemini(url, key, image, steps))
                print(f"  aiohttp                {1000 * other / calls:6.2f} ms CPU per call")
    return 0 if good else 1


async def _drive_bare(
    bare: Callable[[str, str, bytes], Send], url: str, key: str, image: bytes, steps: dict[str, int]
) -> float:
    return await drive(bare(url, key, image), steps)


if __name__ == "__main__":
    sys.exit(main())
