"""Whether an AEDAT 4 file has its end: the table of its packets, which comes last and which no event depends on.

A file begins with a line and a FlatBuffers table of the type IOHeader, whose second field is the place of the table of
packets. That is a frame of LZ4, to the end of the file: a head, blocks with their lengths, a length of zero, and the
checksums that the head announces. A full disk cuts it off, and faery 0.7.1, which writes it, does not say so.
"""

from __future__ import annotations

import struct
from pathlib import Path

HEADER = 2**16  # bytes, in which the place of the table stands
MOST_TABLE = 2**26  # bytes of the table, in which a packet takes some tens
START = b"#!AER-DAT4.0\r\n"
MAGIC = 0x184D2204  # of a frame of LZ4
BLOCK_CHECKSUM, CONTENT_SIZE, CONTENT_CHECKSUM, DICTIONARY = 0x10, 0x08, 0x04, 0x01  # bits of its first flag byte
UNCOMPRESSED = 0x80000000  # bit of a block's length


def check_end(path: Path) -> None:
    """ValueError unless the table of packets is there, all of it, and ends where the file ends."""
    try:
        with open(path, "rb") as file:
            place = _place_of_table(file.read(HEADER))
            file.seek(place)
            table = file.read(MOST_TABLE + 1)
        if len(table) > MOST_TABLE:
            raise ValueError(f"its table of packets has more than {MOST_TABLE} bytes")
        length = _length_of_frame(table)
    except struct.error:
        raise ValueError("it ends too early") from None
    if length != len(table):
        raise ValueError(f"its table of packets has {length} bytes, of which {len(table)} are there")


def _place_of_table(data: bytes) -> int:
    if not data.startswith(START):
        raise ValueError("it is not an AEDAT 4 file")
    root = len(START) + 4  # behind the size of the header
    (offset,) = struct.unpack_from("<I", data, root)
    table = root + offset
    (to_fields,) = struct.unpack_from("<i", data, table)
    fields = table - to_fields
    (second,) = struct.unpack_from("<H", data, fields + 4 + 2)
    (place,) = struct.unpack_from("<q", data, table + second)
    if place <= table:
        raise ValueError("it has no table of packets")
    return int(place)


def _length_of_frame(data: bytes) -> int:
    magic, flags = struct.unpack_from("<IB", data)
    if magic != MAGIC:
        raise ValueError("its table of packets is not where the header says")
    at = 4 + 3 + 8 * bool(flags & CONTENT_SIZE) + 4 * bool(flags & DICTIONARY)
    while length := struct.unpack_from("<I", data, at)[0] & ~UNCOMPRESSED:
        at += 4 + int(length) + 4 * bool(flags & BLOCK_CHECKSUM)
    return at + 4 + 4 * bool(flags & CONTENT_CHECKSUM)
