"""AEDAT 4 files: packets of events in FlatBuffers, each compressed on its own by LZ4 or Zstandard.

Read here and not by faery, which ends the whole process at some damaged files. A file begins with a line and a table
IOHeader, whose fields are the compression, the place of the table of packets, and XML that says what the streams are
and how large the frame is. Packets follow: the number of the stream, a length, and that many bytes. Of several
streams of events the first is read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO
from xml.etree import ElementTree

import numpy as np

from gerd.errors import StorageError
from gerd.exchange import aedat
from gerd.exchange.decoders.columns import side
from gerd.exchange.decoders.opened import MOST_UNPACKED, ROWS_AT_ONCE, Damage, Opened, Rows, rows_of
from gerd.exchange.packages import package

MAGIC = aedat.START
MOST_HEADER = 2**20  # bytes
PART = 2**20  # bytes that are unpacked at once: pyarrow loses the room for them where a packet is damaged
COMPRESSIONS = (None, "lz4", "lz4", "zstd", "zstd")  # by their numbers
EVENT = np.dtype(
    {"names": ["t", "x", "y", "p"], "formats": ["<i8", "<i2", "<i2", "u1"], "offsets": [0, 8, 10, 12], "itemsize": 16}
)
EVENTS = "EVTS"  # the kind of a stream


@dataclass(frozen=True)
class _Header:
    compression: str | None
    table: int  # where the table of packets begins; after the last packet
    stream: int  # of the events
    size: tuple[int, int] | None


def open_file(file: IO[bytes], damage: Damage) -> Opened:
    """An AEDAT 4 file, from its beginning on."""
    try:
        header = _header(file)
    except (struct.error, ValueError, IndexError, KeyError, ElementTree.ParseError) as error:
        raise StorageError(f"{damage.path}: its header cannot be read: {error}") from None
    try:
        aedat.check_end(damage.path)
    except ValueError as error:
        damage.found("the end of the file", 1, f"is damaged: {error}")
    return Opened("aedat4", header.size, _blocks(file, header, damage))


def _header(file: IO[bytes]) -> _Header:
    """What the header says; the file is then at its first packet."""
    file.seek(len(MAGIC))
    (length,) = struct.unpack("<I", file.read(4))
    if length > MOST_HEADER:
        raise ValueError(f"it has {length} bytes; allowed: up to {MOST_HEADER}")
    data = file.read(length)
    if len(data) < length:
        raise ValueError("it ends too early")
    fields = _fields(data, 0)
    compression = struct.unpack_from("<i", data, fields[0])[0] if fields[0] else 0
    table = struct.unpack_from("<q", data, fields[1])[0] if fields[1] else -1
    stream, size = _stream(_vector(data, fields[2], 1).decode())
    return _Header(COMPRESSIONS[compression], table, stream, size)


def _fields(data: bytes, root: int) -> list[int]:
    """Where the first three fields of the table lie that is named at `root`; 0 for one that is not there."""
    table = root + struct.unpack_from("<I", data, root)[0]
    layout = table - struct.unpack_from("<i", data, table)[0]
    (length,) = struct.unpack_from("<H", data, layout)
    places = [struct.unpack_from("<H", data, layout + at)[0] if at < length else 0 for at in (4, 6, 8)]
    return [table + place if place else 0 for place in places]


def _vector(data: bytes, place: int, size: int) -> bytes:
    """The bytes of a vector, or a text, of elements of this size that is named at a place."""
    if not place:
        return b""
    begin = place + struct.unpack_from("<I", data, place)[0]
    (count,) = struct.unpack_from("<I", data, begin)
    result = data[begin + 4 : begin + 4 + count * size]
    if len(result) < count * size:
        raise ValueError(f"a vector of {count} elements reaches beyond its end")
    return result


def _stream(about: str) -> tuple[int, tuple[int, int] | None]:
    """The number of the first stream of events, and the size of its frame."""
    if "<!" in about:
        raise ValueError("its XML declares entities")
    for node in ElementTree.fromstring(about).iter("node"):
        said = {each.get("key"): each.text or "" for each in node.findall("attr")}
        if said.get("typeIdentifier") == EVENTS:
            inside = {
                each.get("key"): each.text or "" for child in node.findall("node") for each in child.findall("attr")
            }
            width, height = side(inside.get("sizeX", "")), side(inside.get("sizeY", ""))
            return int(node.get("name", "")), None if width is None or height is None else (width, height)
    raise ValueError("it names no stream of events")


def _blocks(file: IO[bytes], header: _Header, damage: Damage) -> Iterator[Rows]:
    while header.table < 0 or file.tell() < header.table:
        head = file.read(8)
        if not head and header.table < 0:
            return
        try:
            stream, length = struct.unpack("<ii", head)
            data = file.read(length)
            if len(data) < length or length < 0:
                raise ValueError("it ends too early")
            if stream != header.stream:
                continue
            unpacked = _unpacked(data, header.compression)
            events = np.frombuffer(_vector(unpacked, _fields(unpacked, 4)[0], EVENT.itemsize), EVENT)
        except (struct.error, ValueError, OSError) as error:
            # The length of a damaged packet cannot be trusted, so nothing after it can be found.
            damage.found("the rest of the file", 1, f"has a damaged packet at byte {file.tell()}: {error}")
            return
        for begin in range(0, len(events), ROWS_AT_ONCE):
            part = events[begin : begin + ROWS_AT_ONCE]
            yield rows_of(part["x"], part["y"], part["t"], part["p"] != 0)


def _unpacked(data: bytes, compression: str | None) -> bytes:
    if compression is None:
        return data
    arrow = package("pyarrow")
    result = bytearray()
    with arrow.CompressedInputStream(arrow.BufferReader(data), compression) as stream:
        while part := stream.read(PART):
            result += part
            if len(result) > MOST_UNPACKED:
                raise ValueError(f"it unpacks to more than {MOST_UNPACKED} bytes")
    return bytes(result)
