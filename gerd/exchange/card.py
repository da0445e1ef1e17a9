"""What a dataset is, for people and programs that collect such facts: a dataset in, a card and a Croissant file out.

    README.md        a dataset card: what is in it, how it was made, how to read it; with the header that the Hugging
                     Face Hub reads
    croissant.json   the same for programs (Croissant 1.1 of MLCommons, JSON-LD), with the digest of every file and
                     recording, and what the extension for responsible AI asks for

All of it follows from the dataset, but for the few facts that only its author knows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import yaml

from gerd.errors import GerdError, StorageError, counted
from gerd.storage.manifest import MANIFEST, RESOLVED
from gerd.storage.places import Folder
from gerd.storage.recordings import Recordings, check_complete
from gerd.storage.whole import write_whole

CARD, CROISSANT = "README.md", "croissant.json"
PAPER = "https://arxiv.org/abs/2412.03259"
KEYWORDS = ("event camera", "neuromorphic", "equivariance", "GERD")
SPECIFICATION = "http://mlcommons.org/croissant/1.1"
SPECIFICATION_OF_RAI = "http://mlcommons.org/croissant/RAI/1.0"
DECADES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))  # of the Hub
NAMES = {  # of Croissant, JSON-LD's way of saying which vocabulary each word is from
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    "description": {"@container": "@language"},
    **{
        word: f"cr:{word}"
        for word in (
            *("arrayShape", "citeAs", "column", "containedIn", "equivalentProperty", "extract", "field", "fileObject"),
            *("fileProperty", "fileSet", "format", "includes", "isArray", "isLiveDataset", "jsonPath", "key", "md5"),
            *("parentField", "path", "recordSet", "references", "regex", "repeated", "replace", "samplingRate"),
            *("separator", "source", "subField", "transform"),
        )
    },
}


@dataclass(frozen=True)
class About:
    """What only the author of a dataset knows."""

    name: str = ""  # by default that of its folder
    license: str = ""  # its name in the list of SPDX, such as CC-BY-4.0, or an address
    creators: tuple[str, ...] = ()
    url: str = ""  # where the dataset is to be found
    published: str = ""  # the day, as 2026-11-19

    def __post_init__(self) -> None:
        try:
            if self.published:
                date.fromisoformat(self.published)
        except ValueError:
            raise GerdError(f"published {self.published!r}: allowed: a day such as 2026-11-19") from None


def write_card(
    path: str | Path,
    *,
    name: str = "",
    license: str = "",
    creators: Sequence[str] = (),
    url: str = "",
    published: str = "",
    out: str | Path | None = None,
    replace: bool = False,
) -> tuple[Path, Path]:
    """Write the card and the Croissant file of a dataset into its folder, or into `out`; where they are.

    license: as the list of SPDX names it, such as CC-BY-4.0, or an address. Files that are there are replaced only with
    `replace`.
    """
    data = Recordings(path)
    check_complete(data)
    if out is None and not isinstance(data.place, Folder):
        raise GerdError(f"{path}: is no folder; give one for the card, out=…")
    folder = Path(out) if out is not None else Path(str(data.path))
    about = About(name or _name(data), license, tuple(creators), url, published)
    card, croissant = folder / CARD, folder / CROISSANT
    for file in (card, croissant):
        if file.exists() and not replace:
            raise StorageError(
                f"{file}: is there already; allowed: --replace (replace=True), or another folder with --out (out=…)"
            )
    write_whole(croissant, (json.dumps(described(data, about), indent=1, ensure_ascii=False) + "\n").encode())
    write_whole(card, card_of(data, about).encode())
    return card, croissant


def _name(data: Recordings) -> str:
    return Path(str(data.path).rstrip("/")).name or "dataset"


def described(data: Recordings, about: About) -> dict[str, object]:
    """A dataset as Croissant describes it."""
    manifest = data.manifest
    files = {entry.file: entry.sha256 for entry in manifest.shards} | dict(manifest.files)
    known: dict[str, object] = {
        "@context": NAMES,
        "@type": "sc:Dataset",
        "conformsTo": [SPECIFICATION, SPECIFICATION_OF_RAI],
        "name": about.name,
        "description": _description(data),
        "keywords": list(KEYWORDS),
        "citeAs": PAPER,
        "version": f"1.0.0+{manifest.config_digest[:12]}",
        "isAccessibleForFree": True,
        "license": _license_address(about.license),
        "creator": [{"@type": "sc:Person", "name": creator} for creator in about.creators],
        "url": about.url,
        "datePublished": about.published,
        "distribution": [
            _file(data, MANIFEST, None),
            *(_file(data, file, digest) for file, digest in sorted(files.items())),
        ],
        "recordSet": [_record_set()],
        **{f"rai:{word}": text for word, text in _responsible(data).items()},
    }
    return {word: value for word, value in known.items() if value not in ("", [])}


def _file(data: Recordings, name: str, digest: str | None) -> dict[str, object]:
    kinds = {".json": "application/json", ".yaml": "application/yaml"}
    file = data.place.open(name)
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "contentSize": f"{file.size} B",
        "encodingFormat": kinds.get(Path(name).suffix, "application/octet-stream"),
        "sha256": digest or hashlib.sha256(data.place.read(name)).hexdigest(),
    }


def _record_set() -> dict[str, object]:
    """The recordings, each by the sha256 of its events: all that a program can read without GERD."""
    return {
        "@type": "cr:RecordSet",
        "@id": "recordings",
        "name": "recordings",
        "description": "One row for each recording, in the order of gerd.Recordings.",
        "field": [
            {
                "@type": "cr:Field",
                "@id": "recordings/digest",
                "name": "digest",
                "description": "sha256 of the events of the recording, as gerd.Recording.digest.",
                "dataType": "sc:Text",
                "source": {
                    "fileObject": {"@id": MANIFEST},
                    "extract": {"jsonPath": "$.shards[*].recordings[*]"},
                },
            }
        ],
    }


def _license_address(license: str) -> str:
    return license if "://" in license or not license else f"https://spdx.org/licenses/{license}.html"


def _description(data: Recordings) -> str:
    """What the dataset is, in two sentences."""
    config = data.config
    manifest = data.manifest
    frame = f"{config.sensor.width}×{config.sensor.height} pixels, steps of {config.step_us} µs"
    how = "recorded by an event camera before a screen" if data.recorded else "simulated"
    swept = f" {manifest.count} draws × {manifest.members} members of a sweep of {', '.join(config.sweep)}."
    return (
        f"{counted(len(data), 'recording')} of 2D shapes under exactly known affine motion, {how}: events ({frame}) "
        "with the transformation T(t) of each shape, its velocity and its acceleration at every step."
        f"{swept if config.sweep else ''}"
    )


def _responsible(data: Recordings) -> dict[str, str]:
    """What the extension for responsible AI asks for."""
    if data.recorded:
        made = "A camera recorded a video of simulated scenes on a screen; gerd register found its clock and view."
        kind = "Direct measurement"
    else:
        version = data.manifest.gerd_version
        made = f"Simulated by GERD {version} from {RESOLVED}, from which all bits follow."
        kind = "Software Collection"
    return {
        "dataCollection": made,
        "dataCollectionType": kind,
        "dataUseCases": (
            "Training of event-based vision models, and measuring which transformations they respect: members of a "
            "family differ in what is swept and in nothing else."
        ),
        "dataLimitations": (
            "Flat shapes of uniform brightness on an empty background, affine motion, no optics. What a model does "
            "here need not be what it does on recordings of natural scenes."
        ),
        "dataBiases": (
            "Shapes, sizes, speeds and noises have the distributions of the config, and no others; what it leaves out, "
            "a model does not see."
        ),
        "dataSocialImpact": "No people and no real places are shown; no direct impact on people is known.",
        "personalSensitiveInformation": "None: geometric shapes.",
    }


def card_of(data: Recordings, about: About) -> str:
    """The card as Markdown."""
    manifest = data.manifest
    config = data.config
    size = next((words for most, words in DECADES if len(data) < most), "n>1M")
    header: dict[str, object] = {"pretty_name": about.name, "size_categories": [size], "tags": list(KEYWORDS)}
    if about.license:
        header["license"] = about.license.lower() if "://" not in about.license else "other"
    family = f" ({manifest.count} draws × {manifest.members} members)" if config.sweep else ""
    rows = {
        "Recordings": f"{len(data)}{family}",
        "Swept": "; ".join(f"`{path}`: {', '.join(map(str, values))}" for path, values in config.sweep.items()),
        "Frame": f"{config.sensor.width}×{config.sensor.height} pixels, steps of {config.step_us} µs",
        "Seed": f"{config.seed}",
        "Events": "recorded by a camera before a screen" if data.recorded else "simulated",
        "Made by": f"gerd {manifest.gerd_version} (format {manifest.format_version})",
        "Config": f"sha256 `{manifest.config_digest}`",
        "Licence": about.license,
        "By": ", ".join(about.creators),
        "Found at": about.url,
        "Published": about.published,
    }
    facts = "\n".join(f"| {name} | {value} |" for name, value in rows.items() if value)
    return f"""\
---
{yaml.safe_dump(header, sort_keys=False, allow_unicode=True).strip()}
---

# {about.name}

{_description(data)}

| | |
| --- | --- |
{facts}

## To read it

```python
import gerd  # pip install gerd-events

data = gerd.Recordings("{about.name}")
recording = data[0]
recording.events, recording.T  # events with x, y, t, p; the transformation of each shape at every step
```

`gerd verify {about.name}` compares every file and every recording with its sha256.

## What it is made from

`resolved.json` holds every setting. The part that differs from the defaults:

```yaml
{config.to_yaml().strip()}
```

## Use and limits

{_sentences(data)}

The method is described in [GERD: Geometric event response data generation]({PAPER}).
"""


def _sentences(data: Recordings) -> str:
    said = _responsible(data)
    return " ".join(said[word] for word in ("dataUseCases", "dataLimitations", "dataBiases"))
