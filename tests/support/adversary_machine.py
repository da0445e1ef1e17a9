"""What an adversary on the same machine does: clients that do not read their answers, and forged caches of kernels.

Used by `adversary.py`; functions take a folder, a number of tries and a seed, and give counts of what came of them.
"""

from __future__ import annotations

import gc
import json
import os
import random
import select
import shutil
import socket
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import gerd
from gerd.page import server
from gerd.page.answers import Editor
from gerd.page.limits import Limits

BIG = "sensor: {width: 512, height: 512}\nsteps: 26\nnoise: {background: 0.5}\nactors: [{shape: circle}]\n"  # 14 MB
CLIENTS = 4  # that do not read at the same time
TAKING, PATIENCE = 1.0, 120.0  # seconds
BYTES_OF_CLIENT = 64 * 2**20  # that may stay when it is gone, all of them together: what Python does not give back
STRANGER = 12345  # a user id

# A process that makes a recording in both timings, with a cache and without the code that is shipped.
USE = """
import sys
from pathlib import Path
from gerd.events import compiled
compiled.SHIPPED = Path("nothing shipped")
import gerd
print(*(gerd.simulate(gerd.parse(sys.argv[1]), timing=timing).digest for timing in ("step", "exact")))
"""
SCENE = """
sensor: {width: 16, height: 12}
steps: 3
noise: {background: 0.1}
actors: [{shape: circle, translation: {velocity: [1, 0]}}]
"""


def slow_readers(folder: Path, number: int, seed: int) -> Counter[str]:
    """Clients ask for large answers and take none or a little of them: they are dropped, and others are answered."""
    file, chance, outcomes = folder / "slow.yaml", random.Random(seed), Counter[str]()
    file.write_text(BIG)
    if number == 0:
        return outcomes
    with server.running(Editor.of(file, limits=Limits(taking=TAKING))) as address:
        place, _, token = address.partition("?token=")
        port = int(place.rstrip("/").rpartition(":")[2])
        body = json.dumps({"text": BIG, "overrides": [], "index": 0, "member": 0}).encode()
        head = f"POST /api/recording HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        request = f"{head}Authorization: Bearer {token}\r\n\r\n".encode() + body
        for turn in range(1 + -(-number // CLIENTS)):
            with ExitStack() as stack:
                clients = [stack.enter_context(deaf(port, request)) for _ in range(CLIENTS)]
                outcomes.update(dropped(client, chance.choice([0, 0, 1, 100])) for client in clients)
            if turn == 0:  # what a server needs in any case it has now
                before = memory()
        kept = memory() - before
        outcomes["lost" if kept > BYTES_OF_CLIENT else "memory given back"] += 1
    return outcomes


def deaf(port: int, request: bytes) -> socket.socket:
    """A client that has asked, and whose system takes no more than a few kilobytes for it."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect((server.LOOPBACK, port))
    client.sendall(request)
    return client


def dropped(client: socket.socket, sip: int) -> str:
    """What becomes of a client that takes `sip` bytes now and then."""
    ended, end = select.poll(), time.monotonic() + PATIENCE
    ended.register(client, 0)
    client.setblocking(False)
    while time.monotonic() < end:
        if ended.poll(50):
            return "dropped"
        try:
            if sip and client.recv(sip) == b"":
                return "dropped"
        except BlockingIOError:
            continue
        except OSError:
            return "dropped"
    return "hung"


def memory() -> int:
    """Bytes that this process, in which the server runs, holds."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def forged_caches(folder: Path, number: int, seed: int) -> Counter[str]:
    """Others write to the cache of kernels what they can: no recording changes, and what is not ours is not loaded."""
    chance, outcomes = random.Random(seed), Counter[str]()
    if number == 0:
        return outcomes
    wanted = " ".join(gerd.simulate(gerd.parse(SCENE), timing=timing).digest for timing in ("step", "exact"))
    sound, home = folder / "sound cache", folder / "cache"
    assert recorded(sound) == wanted
    for _ in range(number):
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(sound, home)
        files = sorted((home / "gerd").iterdir())
        how = chance.choice(["owner", "mode", "link", "pipe", "swapped", "cut", "folder"])
        bad = forge(chance, how, files, folder)
        try:
            made = recorded(home)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            print(f"a cache with {how} {bad.name}: {error}", file=sys.stderr)
            outcomes["hung" if isinstance(error, subprocess.TimeoutExpired) else "crashed"] += 1
            continue
        outcomes["not loaded" if made == wanted else "wrong"] += 1
    return outcomes


def forge(chance: random.Random, how: str, files: list[Path], folder: Path) -> Path:
    """Put something into the place of a file of the cache, which would be another's code or no code."""
    bad, other = chance.sample(files, 2)
    false = other.read_bytes()  # code of another kernel, whose sha256 is right: it would crash, or give other events
    if how in ("cut", "swapped"):
        bad.write_bytes(false[: chance.randrange(len(false))] if how == "cut" else false)
        if how == "swapped":
            bad.chmod(chance.choice([0o666, 0o622, 0o604, 0o660]))
    elif how == "owner":
        bad.write_bytes(false)
        os.chown(bad, STRANGER, STRANGER) if os.getuid() == 0 else bad.chmod(0o666)
    elif how == "mode":
        bad.write_bytes(false)
        bad.chmod(0o600 | chance.choice([0o020, 0o002, 0o040, 0o004, 0o077]))
    elif how == "folder":
        bad.write_bytes(false)
        bad.parent.chmod(chance.choice([0o777, 0o702, 0o722]))
    else:
        bad.unlink()
        if how == "pipe":
            os.mkfifo(bad)
        else:
            (folder / "elsewhere").write_bytes(false)
            (folder / "elsewhere").chmod(0o666)
            bad.symlink_to(folder / "elsewhere")
    return bad


def recorded(home: Path) -> str:
    """The digests of what a process of its own makes with this cache."""
    root = str(Path(gerd.__file__).parents[1])
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    environment = {**kept, "XDG_CACHE_HOME": str(home), "PYTHONPATH": root}
    command = [sys.executable, "-c", USE, SCENE]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=True)
    return done.stdout.strip()
