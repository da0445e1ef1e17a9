"""What `gerd cache` prints: the user's cache of kernels in, a line on standard output and perhaps no files out."""

from __future__ import annotations

from gerd.cli.terminal import say
from gerd.cli.words import in_bytes
from gerd.errors import GerdError, counted
from gerd.events.compiled import cache_folder, kept_files


def tell_of_cache(clear: bool) -> None:
    """Print where kernels are kept and how many; remove them if that is wanted."""
    size = 0
    files = kept_files()
    for file in files:
        try:
            size += file.lstat().st_size
            if clear:
                file.unlink()
        except FileNotFoundError:
            continue  # another process was faster
        except OSError as error:
            raise GerdError(f"{file}: cannot be removed: {error.strerror}") from None
    removed = "removed " if clear and files else ""
    say(f"{cache_folder()}: {removed}{counted(len(files), 'file')} of compiled kernels, {in_bytes(size)}")
