"""What ends the file of an exported library, so that damage is seen before anything is loaded.

A damaged shared library cannot refuse by itself: the system's loader follows its tables before any
function of it runs. `heterosis_check` in `heterosis.h` and the front ends read the same bytes.
"""

from __future__ import annotations

import struct
import zlib

MAGIC = b"HETEROSO"
SEAL_BYTES = 24


def sealed(image: bytes, version: int) -> bytes:
    """The image, and behind it the magic, the interface's version, a CRC-32, the image's size."""
    return image + struct.pack("<8sIIQ", MAGIC, version, zlib.crc32(image), len(image))
