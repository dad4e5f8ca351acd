"""Rewrite a source distribution so that equal sources give equal bytes: `make release` calls it.

    SOURCE_DATE_EPOCH=SECONDS python .ci/reproducible.py dist/*.tar.gz

Members are sorted; their times are SOURCE_DATE_EPOCH, their owner is root, and their modes are 644 or 755. Wheels need
no such step: setuptools dates their members by SOURCE_DATE_EPOCH itself.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
import tarfile
from pathlib import Path


def rewrite(path: Path, seconds: int) -> None:
    """Replace a .tar.gz by its reproducible form, whole or not at all."""
    with tarfile.open(path) as archive:
        members = {member.name: member for member in archive.getmembers()}
        contents = {}
        for name, member in members.items():
            if member.isfile():
                file = archive.extractfile(member)
                assert file is not None
                contents[name] = file.read()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(members):
            member = _plain(members[name], seconds)
            archive.addfile(member, io.BytesIO(contents.get(name, b"")))
    temporary = path.with_suffix(".part")
    temporary.write_bytes(gzip.compress(packed.getvalue(), mtime=seconds))
    temporary.replace(path)


def _plain(member: tarfile.TarInfo, seconds: int) -> tarfile.TarInfo:
    """Return the header of a member without traces of the machine."""
    plain = tarfile.TarInfo(member.name)
    plain.type = member.type
    plain.linkname = member.linkname
    plain.size = member.size
    plain.mtime = seconds
    is_executable = member.isdir() or member.mode & 0o100
    plain.mode = 0o644
    if is_executable:
        plain.mode = 0o755
    return plain


if __name__ == "__main__":
    for name in sys.argv[1:]:
        rewrite(Path(name), int(os.environ["SOURCE_DATE_EPOCH"]))
