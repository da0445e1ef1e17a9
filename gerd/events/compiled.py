"""Kernels as machine code: a function that numba can compile in, a function that calls its machine code out.

The code of a kernel is one object file for one kind of processor. A package that was built with such files
(`hatch_build.py`) has them beside this one, in `machine`; otherwise numba compiles them at first use, and they are kept
in this user's cache. Either way they are loaded by llvmlite, and numba itself is needed only to compile.

A file begins with the sha256 of what follows, and is believed only if that is right. In the cache, it is also believed
only if nobody but this user could have written it: the folders above it are this user's or the system's, and the file
that was opened is this user's and closed to all others. Whatever is wrong with it (a full disk, a damaged file, a
folder that others may write to) only means that the kernel is compiled again.

Machine code takes one address: of 8-byte slots, in which it finds its arguments and puts its results.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import re
import stat
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from operator import itemgetter
from pathlib import Path
from threading import RLock
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from gerd.files import read_own, read_regular, write_own

if TYPE_CHECKING:
    from llvmlite import binding, ir

try:
    import grp
    import pwd
except ImportError:  # Windows, where nobody can tell who may have written a file: nothing is kept
    grp = pwd = None  # type: ignore[assignment]

SHIPPED = Path(__file__).parent / "machine"
# The kinds of processors that code is shipped for, by machine: the better ones first, and what they must have.
V3 = frozenset(["avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2"])
V4 = V3 | frozenset(["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"])
PROCESSORS = {"x86_64": {"x86-64-v4": V4, "x86-64-v3": V3}, "aarch64": {"generic": frozenset(["neon"])}}

LARGEST_CODE = 2**28  # bytes of a file
DIGEST = hashlib.sha256().digest_size
ENTRY = "gerd_entry"  # the name of the function in an object file
RESULTS = 4  # slots for results: their number first. Behind them one that numba's functions ask for, then arguments

OF_EVERY_SYSTEM = frozenset(["memset", "memcpy", "memmove", "sqrt"])  # functions that machine code may call

# The kernels allocate nothing, so that they need no counts of references, and Python calls none of them as numba would
# have it. Without either, compiling takes two thirds of the time.
OPTIONS = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "no_cpython_wrapper": True, "_nrt": False}

_KEPT = re.compile(r"\w+(-[0-9a-f]{16}){3}|\.\w+(-[0-9a-f]{16}){3}\.\d+")  # names of files in the cache
_LOADING = RLock()

Rule = TypeVar("Rule", bound=Callable[..., object])  # a function that can be compiled
Entry = Callable[["ctypes.Array[ctypes.c_char]"], int]  # machine code: slots in, a status out


def compiled(function: Rule) -> Rule:
    """Mark a function of a module of kernels, which is compiled when it is needed."""
    function.__dict__["options"] = OPTIONS
    return function


def inlined(function: Rule) -> Rule:
    """Mark a function that becomes a part of the code that calls it, so that it is not compiled by itself."""
    function.__dict__["options"] = {**OPTIONS, "inline": "always"}
    return function


def apart(function: Rule) -> Rule:
    """Mark a function whose arrays never overlap: it is compiled without the tests for that in its loops."""
    function.__dict__["is_apart"] = True
    return compiled(function)


class Argument(NamedTuple):
    """A value as a kernel takes it."""

    kinds: str
    slots: bytes
    plain: object  # the value as a number, an array or a tuple of these; the slots point into its arrays


def argument(value: object) -> Argument:
    """A number, an array or a tuple of these as a kernel takes it; what is an argument already stays as it is."""
    make = _ARGUMENTS.get(type(value))
    if make is not None:
        return make(value)
    if isinstance(value, tuple):  # with names
        return _tuple_argument(value)
    raise TypeError(f"a kernel takes no {type(value).__name__}")


def _array_argument(value: NDArray[np.generic]) -> Argument:
    flags = value.flags
    axes = value.ndim
    if not (flags.c_contiguous and flags.aligned and flags.writeable):
        raise TypeError("a kernel takes arrays that are in one piece, aligned and writeable")
    start = value.__array_interface__["data"][0]
    slots = _ARRAY[axes](0, 0, value.size, value.itemsize, start, *value.shape, *value.strides)
    return Argument(f"{value.dtype.str}{axes}", slots, value)


def _tuple_argument(value: tuple[object, ...]) -> Argument:
    kinds, slots, plain = zip(*[part if type(part) is Argument else argument(part) for part in value], strict=True)
    return Argument(f"({' '.join(kinds)})", b"".join(slots), plain)


_INT, _UNSIGNED, _FLOAT = (struct.Struct(form).pack for form in "qQd")
_ARRAY = [struct.Struct(f"{5 + 2 * axes}q").pack for axes in range(6)]
_ARGUMENTS: dict[type, Callable[[Any], Argument]] = {
    Argument: lambda value: value,
    tuple: _tuple_argument,
    np.ndarray: _array_argument,
    int: lambda value: Argument("i", _INT(value), value),
    np.int64: lambda value: Argument("i", _INT(value), int(value)),
    bool: lambda value: Argument("b", _INT(value), value),
    np.bool_: lambda value: Argument("b", _INT(bool(value)), bool(value)),
    np.uint64: lambda value: Argument("u", _UNSIGNED(value), value),
    float: lambda value: Argument("f", _FLOAT(value), value),
    np.float64: lambda value: Argument("f", _FLOAT(value), float(value)),
}


class Kernel:
    """A function of a module of kernels, as machine code."""

    def __init__(self, function: FunctionType, shipped: Path = SHIPPED):
        """`shipped` is the folder with the code that came with the package."""
        self.function = function
        self._shipped = shipped
        modules = sorted(_modules(function.__module__))
        files = [Path(__file__), *(Path(str(sys.modules[module].__file__)) for module in modules)]
        source = b"".join(file.read_bytes().replace(b"\r\n", b"\n") for file in files)
        source += repr([_numbers(module) for module in modules]).encode()
        self._name = f"{function.__name__}-{hashlib.sha256(source).hexdigest()[:16]}"
        self.loaded: dict[str, Entry] = {}  # by the kinds of its arguments
        self.compilations = 0

    def __call__(self, *values: object) -> tuple[int, ...]:
        kinds, slots, plain = argument(values)
        entry = self.loaded.get(kinds) or self._load(kinds, plain)
        memory = ctypes.create_string_buffer(bytes(8 * (RESULTS + 1)) + slots)
        if status := entry(memory):
            raise RuntimeError(f"{self.function.__name__} ended with status {status}")
        return struct.unpack_from(f"{memory[0][0]}q", memory, 8)

    def is_kept(self) -> bool:
        """Whether there is a file of code for this processor, perhaps for other arguments; it was not looked at."""
        return any(any(file.parent.glob(file.name)) for file in _files(f"{self._name}-*", self._shipped))

    def _load(self, kinds: str, values: object) -> Entry:
        with _LOADING:
            if kinds not in self.loaded:
                stem = f"{self._name}-{hashlib.sha256(kinds.encode()).hexdigest()[:16]}"
                self.loaded[kinds] = _found(stem, self._shipped) or self._made(stem, values)
            return self.loaded[kinds]

    def _made(self, stem: str, values: object) -> Entry:
        if sys.stderr.isatty():
            print("compiling the kernels, once for each installation: about 15 seconds", file=sys.stderr, flush=True)
        assert isinstance(values, tuple)
        code = machine_code(self.function, values)
        self.compilations += 1
        with suppress(Exception):  # then the next process compiles it, too
            _keep(cache_folder() / f"{stem}-{_this_compiler()}", code)
        return _entry(code)


def _modules(module: str) -> set[str]:
    """The modules that decide what the kernels of one do: itself, and those of the kernels that it takes."""
    taken = {value.__module__ for value in vars(sys.modules[module]).values() if hasattr(value, "options")}
    return {module}.union(*map(_modules, taken - {module}))


def _numbers(module: str) -> list[tuple[str, object]]:
    """The numbers and tuples of numbers among a module's names, which may come from a module without kernels."""
    kinds = (int, float, np.generic)
    constants = (
        (name, value)
        for name, value in vars(sys.modules[module]).items()
        if isinstance(value, kinds) or (type(value) is tuple and all(isinstance(part, kinds) for part in value))
    )
    return sorted(constants, key=itemgetter(0))


def _found(stem: str, shipped: Path) -> Entry | None:
    """The kernel whose code stands in a file, if there is one for this processor that can be believed."""
    for file in _files(stem, shipped):
        with suppress(Exception):  # then there is none
            data = (read_regular if file.parent == SHIPPED else read_own)(file, LARGEST_CODE)
            if hashlib.sha256(data[DIGEST:]).digest() == data[:DIGEST]:
                return _entry(data[DIGEST:])
    return None


def _files(stem: str, shipped: Path) -> Iterator[Path]:
    """Where the code of a kernel may be, the best first. Settings of numba ask for code that was made with them."""
    if not _settings():
        for processor in processors():
            yield shipped / f"{stem}-{processor}"
    with suppress(OSError):
        if is_private(cache_folder()):
            yield cache_folder() / f"{stem}-{_this_compiler()}"


def _keep(file: Path, code: bytes) -> None:
    missing = [folder for folder in (file.parent, *file.parent.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
    if is_private(file.parent):
        write_own(file, hashlib.sha256(code).digest() + code)


def cache_folder() -> Path:
    """Where this user's code is kept: what the environment says, and not a file of settings in the current folder."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    home = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "gerd"
    return home.absolute()


def kept_files() -> list[Path]:
    """This user's files of code, for any processor and of any version, and what writers that were killed have left."""
    with suppress(OSError):  # then there are none
        return sorted(file for file in cache_folder().iterdir() if _KEPT.fullmatch(file.name) and not file.is_dir())
    return []


def _settings() -> list[tuple[str, str]]:
    return sorted(item for item in os.environ.items() if item[0].startswith("NUMBA_") and item[0] != "NUMBA_CACHE_DIR")


def _this_compiler() -> str:
    """Sixteen letters for what decides the code of a kernel beside its source: processor, compiler and settings."""
    from importlib.metadata import version

    import llvmlite.binding as llvm

    processor = f"{llvm.get_process_triple()} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    made_by = f"{processor} {version('numba')} {version('llvmlite')} {_settings()}"
    return hashlib.sha256(made_by.encode()).hexdigest()[:16]


def processors() -> Iterator[str]:
    """The kinds of processors that code may be shipped for and that this one can stand for, the best first."""
    import llvmlite.binding as llvm

    has = {name for name, is_there in llvm.get_host_cpu_features().items() if is_there}
    for processor, needed in PROCESSORS.get(platform.machine(), {}).items():
        if needed <= has:
            yield f"{sys.platform}-{processor}"


def _machine(processor: str, features: str) -> binding.TargetMachine:
    """What turns LLVM's code into that of a processor, or loads it, which it can do once: the engine has it then."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(cpu=processor, features=features, opt=3, reloc="pic", codemodel="jitdefault")


def _entry(code: bytes) -> Entry:
    """The function in an object file; it stays in memory as long as the function does."""
    import llvmlite.binding as llvm

    machine = _machine(llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    entry: Any = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(engine.get_function_address(ENTRY))
    entry.engine = engine
    return entry


def machine_code(function: FunctionType, values: tuple[object, ...]) -> bytes:
    """An object file of a kernel for arguments such as these, for this processor or the one that numba is told."""
    import llvmlite.binding as llvm
    import numba

    kernel = _numba_names(function.__module__)[function.__name__]
    types = tuple(map(numba.typeof, values))
    kernel.compile(types)
    module = llvm.parse_assembly(kernel.inspect_llvm(types))
    foreign = {
        f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")
    } - OF_EVERY_SYSTEM
    if foreign:  # a process that loads the code would not have them
        raise TypeError(f"{function.__name__} calls {', '.join(sorted(foreign))}; allowed: what it computes itself")
    module.link_in(llvm.parse_assembly(_entry_text(kernel.overloads[types])))
    settings: Any = numba.config  # whose names are made when it is imported
    processor = settings.CPU_NAME or llvm.get_host_cpu_name()
    features = settings.CPU_FEATURES
    machine = _machine(processor, llvm.get_host_cpu_features().flatten() if features is None else features)
    return machine.emit_object(module)


@cache
def _numba_names(module: str) -> dict[str, Any]:
    """The names of a module of kernels, with numba's functions for those that are to be compiled."""
    import numba

    names = dict(vars(sys.modules[module]))
    for name, value in list(names.items()):
        if not hasattr(value, "options"):
            continue
        if value.__module__ == module:
            names[name] = numba.njit(**value.options)(FunctionType(value.__code__, names))
            if hasattr(value, "is_apart"):
                names[name]._compiler._customize_flags = _with_noalias
        else:
            names[name] = _numba_names(value.__module__)[value.__name__]
    return names


def _with_noalias(flags: Any) -> Any:
    """Numba's flags with one that its decorator does not take."""
    flags.noalias = True
    return flags


def _entry_text(result: Any) -> str:
    """LLVM's text of the function that takes a kernel's arguments from slots, as numba's function wants them."""
    from llvmlite import ir
    from numba import types

    about = result.fndesc
    word = ir.IntType(64)
    count = 0 if about.restype == types.none else len(about.restype)
    if count >= RESULTS or any(kind != types.int64 for kind in (about.restype if count else ())):
        raise TypeError(f"{about.qualname} returns {about.restype}; allowed: up to {RESULTS - 1} whole numbers")
    kind = result.target_context.call_conv.get_function_type(about.restype, about.argtypes)
    module = ir.Module()
    function = ir.Function(module, kind, about.llvm_func_name)
    entry = ir.Function(module, ir.FunctionType(ir.IntType(32), [word.as_pointer()]), ENTRY)
    build = ir.IRBuilder(entry.append_basic_block())

    def slot(number: int, holds: ir.Type) -> ir.Value:
        return build.bitcast(build.gep(entry.args[0], [word(number)]), holds)

    build.store(word(count), slot(0, word.as_pointer()))
    room = [slot(1, kind.args[0]), slot(RESULTS, kind.args[1])]
    given = enumerate(kind.args[2:], RESULTS + 1)
    build.ret(build.call(function, [*room, *(build.load(slot(n, holds.as_pointer())) for n, holds in given)]))
    return str(module)


def is_private(folder: Path) -> bool:
    """Whether only this user, or the system's, can have put files into a folder, or the folder into its place."""
    if pwd is None:
        return False
    for each in (folder, *folder.parents):
        about = os.stat(each)
        others = bool(about.st_mode & stat.S_IWOTH) or bool(about.st_mode & stat.S_IWGRP and not _is_own(about.st_gid))
        sticky = each != folder and about.st_mode & stat.S_ISVTX  # as /tmp: nobody can replace what is another's
        if about.st_uid not in (0, os.getuid()) or (others and not sticky):
            return False
    return True


def _is_own(group: int) -> bool:
    """Whether a group is this user's alone, as many systems make one for each user."""
    try:
        known = grp.getgrgid(group)
        name = known.gr_name
        return name == pwd.getpwuid(os.getuid()).pw_name and set(known.gr_mem) <= {name}
    except KeyError:
        return False
