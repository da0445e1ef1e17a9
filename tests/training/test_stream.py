"""Training data without a disk: the same batches however they are made, taken by whom, and resumed where."""

from __future__ import annotations

import threading
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from support.processes import DEADLINE
from support.scenes import actor, config, same
from torch.utils.data import DataLoader

import gerd
from gerd.recording.simulate import simulate_batch
from gerd.training.stream import tensors_of

MOVING = config(
    actor("square", at={"uniform": [4, 12]}, velocity=[0.4, 0.1], size={"uniform": [4, 8]}),
    actor("circle", at=[12, 6], velocity=[-0.3, 0.1], size=4.0),
    width=22,
    height=15,
    steps=10,
    noise={"background": 0.01},
    seed=5,
)
FAMILY = MOVING.model_copy(update={"sweep": {"time_scale": (0.5, 1, 2)}})
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


def indices(batches: Any) -> list[list[int]]:
    return [label.tolist() for _, label in batches]


def test_the_stream_gives_what_a_dataset_of_the_same_config_has(tmp_path: Path) -> None:
    gerd.generate(FAMILY, tmp_path / "data", 6, workers=1)
    forms: list[dict[str, Any]] = [
        {"label": ("positions", "T", "boxes", "masks", "sweep", "index")},
        {"item": "counts", "sum": 2, "every": 2, "stack": 2, "delay": 1, "steps": 4, "dtype": torch.float32},
        {"item": "sparse", "label": "flow", "warmup": 3, "steps": 7},
        {"item": "events", "label": lambda r: (r.first, len(r)), "delay": -2},
        {"item": "events", "label": ("actor", "echo"), "warmup": 2, "delay": 1},
    ]
    for form in forms:
        starts = {} if "steps" not in form else {"stride": 1}
        data = gerd.Dataset(tmp_path / "data", **form, **starts)
        last = [i for i in range(len(data)) if i + 1 == len(data) or data.place(i + 1)[0] != data.place(i)[0]]
        stream = gerd.Stream(FAMILY, 4, **form)
        for k, batch in enumerate(islice(stream, 4)):
            assert same(batch, gerd.collate([data[i] for i in last[4 * k : 4 * k + 4]])), form


def test_padded_events() -> None:
    events, _ = gerd.Stream(MOVING, 3, "events", pad=True).batch(2)
    lengths = [len(recording) for recording in simulate_batch(MOVING, [6, 7, 8])]
    assert events["mask"].sum(1).tolist() == lengths


def test_families_and_some_of_their_members() -> None:
    stream = gerd.Stream(FAMILY, 6, label=("index", "sweep"))
    _, (index, swept) = stream.batch(1)
    assert index.tolist() == [2, 2, 2, 3, 3, 3]
    assert swept["time_scale"].tolist() == [0.5, 1, 2] * 2
    chosen = stream.where(lambda r: r.config.time_scale != 1)
    frames, (index, swept) = chosen.batch(1)
    assert index.tolist() == [3, 3, 4, 4, 5, 5]
    assert swept["time_scale"].tolist() == [0.5, 2] * 3
    assert torch.equal(frames[3], gerd.simulate(FAMILY, 4, time_scale=2).frames())
    assert chosen.where(lambda r: r.labels["time_scale"] == 2).members == (2,)
    assert stream.members == (0, 1, 2)
    later = gerd.Stream(MOVING, 3, label="index", first=2**32 - 2)
    assert indices([later.batch(0), later.batch(1)]) == [[2**32 - 2, 2**32 - 1, 0], [1, 2, 3]]


@pytest.mark.parametrize("workers", [1, 2])
def test_the_same_batches_in_the_same_order_whatever_the_workers(workers: int) -> None:
    stream = gerd.Stream(MOVING, 3)
    alone = [stream.batch(k) for k in range(7)]
    assert same(list(islice(stream, 7)), alone)
    assert same(list(islice(gerd.Stream(MOVING, 3, ahead=0), 7)), alone)
    assert same(list(islice(gerd.Stream(MOVING, 3).loader(workers), 7)), alone)
    plain = DataLoader(gerd.Stream(MOVING, 3), batch_size=None, num_workers=workers)
    assert all(same(tuple(batch), wanted) for batch, wanted in zip(islice(plain, 7), alone, strict=True))


def test_ranks_take_turns() -> None:
    whole = indices(islice(gerd.Stream(MOVING, 2, label="index"), 12))
    assert whole == [[2 * k, 2 * k + 1] for k in range(12)]
    for workers in (0, 2):
        for rank in range(3):
            stream = gerd.Stream(MOVING, 2, label="index", rank=rank, ranks=3)
            assert indices(islice(stream.loader(workers), 4)) == whole[rank::3]


def take(rank: int, stream: gerd.Stream, store: Path) -> None:
    """What one of two ranks takes, in turn without workers, with forked ones and, the second rank, with a spawned one;
    and what it counts.

    Spawned ones know nothing of torch.distributed.
    """
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    lines = []
    for workers, start in ((0, None), (2, "fork"), (1, "spawn" if rank else "fork")):
        loader = stream.loader(workers, **({"multiprocessing_context": start} if start else {}))
        taken = indices(islice(loader, 2))
        torch.distributed.barrier()
        lines.append(f"{taken} {stream.state_dict()['batch']}")
    store.with_suffix(f".{rank}").write_text("\n".join(lines))
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize("start", ["fork", pytest.param("spawn", marks=pytest.mark.long)])
def test_ranks_of_torch_distributed(start: str, tmp_path: Path) -> None:
    """Two real ranks that are given one stream, as with Lightning's ddp: each has its own place, and counts for itself.

    The stream was made before torch.distributed was set up.
    """
    small = gerd.parse("{sensor: {width: 8, height: 8}, steps: 2, actors: [{shape: square}]}")
    arguments = (gerd.Stream(small, 2, label="index"), tmp_path / "store")
    torch.multiprocessing.start_processes(take, arguments, nprocs=2, start_method=start)
    for rank in range(2):
        lines = (tmp_path / f"store.{rank}").read_text().splitlines()
        batches = [[4 * k + 2 * rank, 4 * k + 2 * rank + 1] for k in range(6)]
        assert lines == [f"{batches[2 * k : 2 * k + 2]} {4 * k + 4}" for k in range(3)]


# State


def test_a_stream_goes_on_where_it_was_stopped() -> None:
    stream = gerd.Stream(MOVING, 2, label="index")
    assert indices(islice(stream, 3)) == [[0, 1], [2, 3], [4, 5]]
    state = stream.state_dict()
    assert state["batch"] == 3
    assert indices(islice(stream, 2)) == [[6, 7], [8, 9]]
    for ahead in (0, 3):
        other = gerd.Stream(MOVING, 2, label="index", ahead=ahead)
        other.load_state_dict(state)
        assert indices(islice(other, 2)) == [[6, 7], [8, 9]]
        assert other.state_dict()["batch"] == 5
    stream.load_state_dict({"batch": 1})
    assert indices(islice(stream.loader(2), 2)) == [[2, 3], [4, 5]]


def test_what_was_made_ahead_is_not_counted() -> None:
    stream = gerd.Stream(MOVING, 2, label="index", ahead=4)
    batches = iter(stream)
    next(batches)
    next(batches)
    assert stream.state_dict()["batch"] == 2


def test_the_state_counts_the_batches_of_all_ranks() -> None:
    stream = gerd.Stream(MOVING, 2, label="index", rank=1, ranks=3)
    list(islice(stream, 4))
    state = stream.state_dict()
    assert state["batch"] == 12
    pair = gerd.Stream(MOVING, 2, label="index", rank=0, ranks=2)
    pair.load_state_dict(state)
    assert indices(islice(pair, 1)) == [[24, 25]]
    with pytest.raises(gerd.GerdError, match="batch 12: allowed with 5 ranks: a multiple of 5"):
        gerd.Stream(MOVING, 2, rank=0, ranks=5).load_state_dict(state)


def test_workers_do_not_start_over_silently() -> None:
    """A loader of somebody else's does not tell the stream what was used."""
    stream = gerd.Stream(MOVING, 2, label="index")
    loader = DataLoader(stream, batch_size=None, num_workers=2)
    assert len(list(islice(loader, 3))) == 3
    with pytest.raises(gerd.GerdError, match=r"would give them the same batches again; use stream.loader"):
        next(iter(loader))
    with pytest.raises(gerd.GerdError, match=r"does not know how many were used; use stream.loader"):
        stream.state_dict()
    stream.load_state_dict({"batch": 3})
    assert indices(islice(stream.loader(2), 2)) == [[6, 7], [8, 9]]


def test_the_length_is_that_of_all_different_recordings() -> None:
    """A loop that knows a length need not fetch a batch ahead to see the end."""
    assert len(gerd.Stream(MOVING, 2)) == 2**31
    assert len(gerd.Stream(FAMILY, 2, rank=1, ranks=3).where(lambda r: r.member)) == 2**32 // 3
    assert len(gerd.Stream(MOVING, 2).loader(2)) == 2**31


def test_a_state_of_another_stream_is_refused() -> None:
    stream = gerd.Stream(MOVING, 2)
    with pytest.raises(gerd.GerdError, match="batch_size 3; this one has 2"):
        stream.load_state_dict(gerd.Stream(MOVING, 3).state_dict())
    with pytest.raises(gerd.GerdError, match="the state is of a stream with config"):
        stream.load_state_dict(gerd.Stream(MOVING.model_copy(update={"seed": 6}), 2).state_dict())
    fast = gerd.Stream(FAMILY, 2).where(lambda r: r.member)
    with pytest.raises(gerd.GerdError, match=r"members \[1, 2\]; this one has \[0, 1, 2\]"):
        gerd.Stream(FAMILY, 2).load_state_dict(fast.state_dict())
    for batch in (-1, 1.5, None):
        with pytest.raises(gerd.GerdError, match=f"batch {batch}: allowed: a whole number, 0 or more"):
            stream.load_state_dict({"batch": batch})


# In the background


def makers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("gerd-stream")]


def test_batches_are_made_ahead_and_the_thread_ends_with_the_loop() -> None:
    made: list[int] = []
    fourth = threading.Event()

    def watched(recording: gerd.Recording) -> torch.Tensor:
        made.append(recording.identity.index)
        if recording.identity.index == 3:
            fourth.set()
        return torch.zeros(1)

    for _ in gerd.Stream(MOVING, 1, label=watched, ahead=3):
        assert fourth.wait(DEADLINE)  # 1, 2 and 3 while 0 is in use
        assert len(makers()) == 1
        break
    assert made == [0, 1, 2, 3]
    assert not makers()


def test_an_error_in_the_background_is_raised_where_the_batch_is_wanted() -> None:
    stream = gerd.Stream(MOVING, 2, label=lambda r: 1 // (r.identity.index - 5))
    batches = iter(stream)
    next(batches)
    next(batches)
    with pytest.raises(ZeroDivisionError):
        next(batches)
    assert not makers()


def test_every_tensor_of_a_batch_is_handed_over() -> None:
    """The streams of a GPU are told of each piece of memory, those of a sparse tensor, too."""
    sparse, label = gerd.Stream(FAMILY, 2, "sparse", ("T", {"a": "sweep"})).batch(0)
    assert [tuple(tensor.shape) for tensor in tensors_of((sparse, label))] == [
        (5, len(sparse.values())),
        (len(sparse.values()),),
        (2, 10, 2, 3, 3),
        (2,),
    ]


# Mistakes


BAD: list[tuple[dict[str, Any], str]] = [
    ({"batch_size": 0}, "batch_size 0: allowed: a whole number, 1 or more"),
    ({"first": -1}, "first -1: allowed"),
    ({"ahead": 0.5}, "ahead 0.5: allowed"),
    ({"steps": 11}, "steps 11: the recording has 10"),
    ({"item": "video"}, "item 'video': allowed"),
    ({"rank": 1}, "rank 1, ranks None: allowed: both or none"),
    ({"rank": 2, "ranks": 2}, "rank 2, ranks 2: allowed"),
    ({"device": "abacus"}, "device 'abacus': allowed: cpu, cuda"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=lambda value: str(value)[:30])
def test_mistakes_are_explained(options: dict[str, Any], message: str) -> None:
    with pytest.raises(gerd.GerdError) as error:
        gerd.Stream(MOVING, **{"batch_size": 2, **options})
    assert message in str(error.value)


def test_other_mistakes_are_explained() -> None:
    with pytest.raises(gerd.GerdError, match="true for none of the 3 members"):
        gerd.Stream(FAMILY, 2).where(lambda r: r.config.time_scale == 3)
    with pytest.raises(gerd.GerdError, match="batch -1: allowed"):
        gerd.Stream(MOVING, 2).batch(-1)
    sizes = gerd.Stream(MOVING.model_copy(update={"sweep": {"sensor.width": (20, 30)}}), 2)
    with pytest.raises(gerd.GerdError, match="do not fit into one batch"):
        next(iter(sizes))


# On a device


def test_the_batch_of_a_device_is_put_together_as_on_the_cpu() -> None:
    """With frames from the CPU in place of the GPU's kernel: members, order, windows, sums and labels are the same."""
    for form in ({"label": ("T", "sweep", "boxes")}, {"item": "counts", "sum": 3, "warmup": 2, "delay": 1}):
        stream = gerd.Stream(FAMILY, 5, **form)
        for k in (0, 1):
            assert same(stream.batch_from_frames(k), stream.batch(k))


@needs_gpu
@pytest.mark.parametrize(
    "form",
    [
        *({}, {"item": "counts", "sum": 2, "label": ("T", "sweep")}, {"item": "sparse"}),
        *({"item": "voxels", "bins": 4}, {"item": "counts", "bins": 5}, {"item": "time_surface"}),
    ],
)
def test_batches_on_a_gpu_are_those_of_the_cpu(form: dict[str, Any]) -> None:
    made = list(islice(gerd.Stream(FAMILY, 5, device="cuda", **form), 3))
    for (frames, label), wanted in zip(made, islice(gerd.Stream(FAMILY, 5, **form), 3), strict=True):
        assert frames.is_cuda
        tensors = label if isinstance(label, torch.Tensor) else label[0]
        assert tensors.is_cuda
        assert same(frames.cpu(), wanted[0])
        assert same(tensors.cpu(), wanted[1] if isinstance(label, torch.Tensor) else wanted[1][0])


@needs_gpu
def test_a_gpu_is_not_used_by_workers() -> None:
    with pytest.raises(gerd.GerdError, match="allowed: num_workers=0"):
        next(iter(gerd.Stream(MOVING, 2, device="cuda").loader(1, multiprocessing_context="spawn")))
