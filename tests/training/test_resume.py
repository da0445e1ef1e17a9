"""Training that goes on where it was stopped: batch for batch what an undisturbed run gives, in the real libraries."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from support.scenes import actor, config, same
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

import gerd

MOVING = config(
    actor("square", at={"uniform": [3, 9]}, velocity=[0.4, 0.1], size={"uniform": [3, 5]}),
    width=14,
    height=12,
    steps=8,
    seed=5,
)
COUNT, BATCH = 9, 2
PER_EPOCH = -(-COUNT // BATCH)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("resume") / "data"
    gerd.generate(MOVING, path, COUNT, workers=1)
    return path


def stream(**options: Any) -> gerd.Stream:
    return gerd.Stream(MOVING, BATCH, label="index", **options)


def dataset(path: Path, **options: Any) -> gerd.Dataset:
    return gerd.Dataset(path, label=("index", "positions"), **{"steps": 3, "stride": 1, **options})


def saved(state: Any) -> Any:
    """The state as it comes back from a file."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def endless(loader: Any) -> Iterator[Any]:
    """Epoch after epoch."""
    while True:
        yield from loader


def plain(batches: Any) -> list[Any]:
    """Batches, as lists that can be compared."""
    if isinstance(batches, torch.Tensor):
        return batches.tolist()
    return [plain(part) for part in batches]


# Streams

WORKERS: list[dict[str, Any]] = [{}, {"num_workers": 2}, {"num_workers": 2, "persistent_workers": True}]


def stateful(made: gerd.Stream, **options: Any) -> Any:
    return StatefulDataLoader(made, batch_size=None, **options)


def own(made: gerd.Stream, **options: Any) -> Any:
    return made.loader(**options)


KINDS = [(own, options) for options in WORKERS] + [(stateful, WORKERS[0]), (stateful, WORKERS[2])]


@pytest.mark.parametrize(("make", "options"), KINDS)
def test_a_stream_in_a_loader(make: Callable[..., Any], options: dict[str, Any]) -> None:
    whole = [plain(stream().batch(k)) for k in range(7)]
    for stop in (1,) if options else (0, 1, 4):
        loader = make(stream(), **options)
        assert plain(islice(loader, stop) if stop else []) == whole[:stop]
        resumed = make(stream(), **options)
        resumed.load_state_dict(saved(loader.state_dict()))
        assert plain(islice(resumed, 1)) == whole[stop : stop + 1]  # by one worker or by the other
        again = make(stream(), **options)
        again.load_state_dict(saved(resumed.state_dict()))
        assert plain(islice(again, 2)) == whole[stop + 1 : stop + 3]


@pytest.mark.parametrize("make", [stateful, own])
def test_a_state_of_one_rank_is_good_for_the_others(make: Callable[..., Any]) -> None:
    """As in a checkpoint, which rank 0 writes."""
    loader = make(stream(rank=0, ranks=2), num_workers=2)
    assert plain(label for _, label in islice(loader, 3)) == [[4 * k, 4 * k + 1] for k in range(3)]
    other = make(stream(rank=1, ranks=2), num_workers=2)
    other.load_state_dict(loader.state_dict())
    assert plain(label for _, label in islice(other, 2)) == [[14, 15], [18, 19]]


@pytest.mark.parametrize("options", WORKERS, ids=str)
def test_the_loader_of_a_stream_goes_on_in_each_epoch_with_what_was_not_used(options: dict[str, Any]) -> None:
    made = stream()
    loader = made.loader(**options)
    epochs = [plain(label for _, label in islice(loader, 3)) for _ in range(3)]
    assert [batch for epoch in epochs for batch in epoch] == [[2 * k, 2 * k + 1] for k in range(9)]
    assert made.state_dict()["batch"] == 9
    assert made.state_dict() == loader.state_dict()
    assert plain(label for _, label in islice(DataLoader(made, batch_size=None, num_workers=1), 1)) == [[18, 19]]


def test_the_state_of_a_stream_is_plain_data() -> None:
    assert json.loads(json.dumps(stream().state_dict())) == stream().state_dict()


def test_a_state_of_other_workers_is_refused() -> None:
    loader = stateful(stream(), num_workers=2)
    list(islice(loader, 1))
    other = stateful(gerd.Stream(MOVING, 3, label="index"), num_workers=2)
    other.load_state_dict(loader.state_dict())
    with pytest.raises(gerd.GerdError, match="batch_size 2; this one has 3"):
        next(iter(other))
    state = loader.state_dict()
    state["_snapshot"]["_worker_snapshots"]["worker_0"]["dataset_state"]["worker"] = 1
    mixed = stateful(stream(), num_workers=2)
    mixed.load_state_dict(state)
    with pytest.raises(gerd.GerdError, match="a stream with worker 1; this one has 0"):
        next(iter(mixed))


def test_batches_in_any_order_have_no_state(folder: Path) -> None:
    data = dataset(folder)
    for loader in (
        stream().loader(2, in_order=False),
        data.loader(BATCH, sampler=data.random_windows(), num_workers=2, in_order=False),
    ):
        with pytest.raises(gerd.GerdError, match="in_order=False: batches come in any order"):
            loader.state_dict()  # type: ignore[attr-defined]


# Random windows


def windows(path: Path, kind: str, seed: int = 4, **options: Any) -> Any:
    data = dataset(path)
    sampler = data.random_windows(seed=seed)
    if kind == "own":
        return data.loader(BATCH, sampler=sampler, **options)
    return StatefulDataLoader(data, BATCH, sampler=sampler, collate_fn=gerd.collate, **options)


@pytest.mark.parametrize(("make", "options"), KINDS)
def test_random_windows_in_a_loader(folder: Path, make: Callable[..., Any], options: dict[str, Any]) -> None:
    kind = make.__name__
    data = dataset(folder)
    sampler = data.random_windows(seed=4)
    numbers = [list(sampler) for _ in range(4)]
    batches = [epoch[k : k + BATCH] for epoch in numbers for k in range(0, COUNT, BATCH)]
    whole = [plain(gerd.collate([data[i] for i in batch])) for batch in batches]
    in_workers = (PER_EPOCH if options.get("persistent_workers") else 2,)
    for stop in in_workers if options else (0, 2, PER_EPOCH - 1, PER_EPOCH, PER_EPOCH + 1):
        loader = windows(folder, kind, **options)
        assert plain(islice(endless(loader), stop) if stop else []) == whole[:stop]
        resumed = windows(folder, kind, **options)
        resumed.load_state_dict(saved(loader.state_dict()))
        until = stop + PER_EPOCH + 1  # in the next epoch
        assert plain(islice(endless(resumed), until - stop)) == whole[stop:until]
        again = windows(folder, kind, **options)
        again.load_state_dict(saved(resumed.state_dict()))
        assert plain(islice(endless(again), 3)) == whole[until : until + 3]


@pytest.mark.parametrize("workers", [0, 2])
def test_the_state_after_an_epoch_is_that_before_the_next(folder: Path, workers: int) -> None:
    whole = plain(islice(endless(windows(folder, "own")), 2 * PER_EPOCH))
    for kind in ("own", "stateful"):
        loader = windows(folder, kind, num_workers=workers)
        assert plain(loader) == whole[:PER_EPOCH]
        resumed = windows(folder, kind, num_workers=workers)
        resumed.load_state_dict(saved(loader.state_dict()))
        assert plain(resumed) == whole[PER_EPOCH:]


def test_a_last_batch_that_is_dropped_does_not_count(folder: Path) -> None:
    loader = windows(folder, "own", drop_last=True)
    whole = plain(islice(endless(loader), 2 * (PER_EPOCH - 1)))
    loader = windows(folder, "own", drop_last=True)
    list(islice(loader, PER_EPOCH - 1))
    resumed = windows(folder, "own", drop_last=True)
    resumed.load_state_dict(loader.state_dict())
    assert plain(resumed) == whole[PER_EPOCH - 1 :]


def test_the_sampler_alone(folder: Path) -> None:
    data = dataset(folder)
    epochs = [list(epoch) for epoch in [data.random_windows(seed=4)] * 3]
    sampler = data.random_windows(seed=4)
    iter(sampler)  # loaders make iterators that they do not use
    assert list(islice(sampler, 4)) == epochs[0][:4]
    state = saved(sampler.state_dict())
    assert (state["epoch"], state["item"]) == (0, 4)
    for epoch, rest in ((0, epochs[0][4:]), (2, epochs[2])):  # the rest of the epoch of the state, or another one
        other = data.random_windows(seed=4)
        other.load_state_dict(state)
        assert other.state_dict() == state
        other.set_epoch(epoch)
        assert list(other) == rest
        assert other.epoch == epoch + 1
    assert list(sampler) == epochs[1]
    assert sampler.state_dict()["item"] == COUNT
    sampler.set_epoch(7)
    assert (sampler.state_dict()["epoch"], sampler.state_dict()["item"]) == (7, 0)


def test_the_state_of_random_windows_counts_all_ranks(folder: Path) -> None:
    data = dataset(folder)
    whole = list(data.random_windows())
    one = data.random_windows(rank=0, ranks=3)
    assert list(islice(one, 2)) == whole[:6:3]
    state = one.state_dict()
    assert state["item"] == 6
    for rank, ranks in ((1, 3), (1, 2), (0, 1)):
        other = data.random_windows(rank=rank, ranks=ranks)
        other.load_state_dict(state)
        rest = list(other)
        assert rest[: len(whole[6 + rank :: ranks])] == whole[6 + rank :: ranks]
        assert 6 // ranks + len(rest) == len(other)
    with pytest.raises(gerd.GerdError, match="item 6: allowed with 4 ranks: a multiple of 4"):
        data.random_windows(rank=0, ranks=4).load_state_dict(state)


def test_a_state_of_other_windows_is_refused(folder: Path, tmp_path: Path) -> None:
    data = dataset(folder)
    state = data.random_windows(seed=4).state_dict()
    gerd.generate(MOVING.model_copy(update={"seed": 6}), tmp_path / "other", COUNT, workers=1)
    first, last = (data.where(lambda r, held=held: r.index != held) for held in (0, 8))
    cases = [
        (data.random_windows(seed=5), state, "a sampler with seed 4; this one has 5"),
        (dataset(tmp_path / "other").random_windows(seed=4), state, "a sampler with config"),
        (first.random_windows(seed=4), state, "recordings 9; this one has 8"),
        (first.random_windows(), last.random_windows().state_dict(), "a sampler with chosen"),
        (dataset(folder, steps=4).random_windows(seed=4), state, "windows 54; this one has 45"),
        (data.random_windows(), {"epoch": -1, "item": 0}, "epoch -1: allowed"),
        (data.random_windows(), {"epoch": 1}, "item None: allowed"),
    ]
    for sampler, wrong, message in cases:
        with pytest.raises(gerd.GerdError, match=message):
            sampler.load_state_dict(wrong)
    loader = windows(folder, "stateful")
    list(islice(loader, 1))
    other = windows(folder, "stateful", seed=5)
    other.load_state_dict(loader.state_dict())
    with pytest.raises(gerd.GerdError, match="a sampler with seed 4; this one has 5"):
        next(iter(other))


# Persistent workers


@pytest.mark.parametrize("random", ["shuffle", "windows"])
def test_persistent_workers_do_not_change_the_order(folder: Path, random: str) -> None:
    orders = []
    for options in WORKERS:
        torch.manual_seed(3)
        data = dataset(folder)
        chosen = {"shuffle": True} if random == "shuffle" else {"sampler": data.random_windows()}
        loader = data.loader(BATCH, **chosen, **options)
        orders.append([plain(label) for _ in range(3) for _, label in loader])
    assert orders[0] == orders[1] == orders[2]
    assert orders[0][:PER_EPOCH] != orders[0][PER_EPOCH : 2 * PER_EPOCH]


def test_a_shuffle_with_a_generator_is_that_of_pytorch(folder: Path) -> None:
    data = dataset(folder)
    made = [
        [label for _, label in make(generator=torch.Generator().manual_seed(2))]
        for make in (
            lambda **options: data.loader(BATCH, shuffle=True, **options),
            lambda **options: DataLoader(data, BATCH, shuffle=True, collate_fn=gerd.collate, **options),
        )
    ]
    assert same(*made)


# Lightning


class Recorder(lightning.LightningModule):
    """Remembers the labels it was trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.seen: list[Any] = []

    def training_step(self, batch: Any, _: int) -> torch.Tensor:
        frames, label = batch
        self.seen.append(plain(label))
        return (self.weight * frames.float().mean()).sum()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), 0.1)


class StreamModule(lightning.LightningDataModule):
    """As in docs/data.md."""

    def __init__(self) -> None:
        super().__init__()
        self.stream = stream()

    def train_dataloader(self) -> Any:
        return self.stream.loader(num_workers=2)

    def state_dict(self) -> dict[str, Any]:
        return self.stream.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.stream.load_state_dict(state)


def train(data: Any, folder: Path, checkpoint: Path | None = None, **options: Any) -> list[Any]:
    every = {"every_n_train_steps": 1} if options.pop("steps", True) else {"every_n_epochs": 1}
    keep = ModelCheckpoint(dirpath=folder, filename="{step}", save_top_k=-1, **every)
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    module = Recorder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = lightning.Trainer(callbacks=[keep], default_root_dir=folder, devices=1, **quiet, **options)
        trainer.fit(module, data, ckpt_path=checkpoint)
    return module.seen


EPOCHS = {"max_steps": 7, "limit_train_batches": 3}
STREAMS: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "stream in epochs": (stream, EPOCHS),
    "loader with workers": (lambda: stream().loader(2), EPOCHS),
    "loader with persistent workers": (lambda: stream().loader(2, persistent_workers=True), EPOCHS),
    "stateful with workers": (lambda: stateful(stream(), num_workers=2), {"max_steps": 4}),
    "data module": (StreamModule, {"max_epochs": 3, "limit_train_batches": 3, "steps": False}),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_goes_on_from_a_checkpoint_of_lightning(name: str, tmp_path: Path) -> None:
    make, options = STREAMS[name]
    whole = train(make(), tmp_path / "whole", **options)
    assert whole == [[2 * k, 2 * k + 1] for k in range(len(whole))]
    checkpoints = sorted((tmp_path / "whole").glob("step=*.ckpt"))
    assert len(checkpoints) >= 3
    for checkpoint in checkpoints[:-1][-4::2]:  # at the end of an epoch and within one, where there are so many
        used = int(checkpoint.stem.removeprefix("step="))
        rest = train(make(), tmp_path / "rest", checkpoint, **options)
        assert rest == whole[used:], checkpoint


@pytest.mark.parametrize(
    ("options", "steps"), [(WORKERS[0], True), (WORKERS[0], False), (WORKERS[1], True), (WORKERS[2], False)], ids=str
)
def test_random_windows_go_on_from_a_checkpoint_of_lightning(
    options: dict[str, Any], steps: bool, folder: Path, tmp_path: Path
) -> None:
    whole = train(windows(folder, "own", **options), tmp_path / "whole", max_epochs=3, steps=steps)
    assert len(whole) == 3 * PER_EPOCH
    undisturbed = [plain(label) for _, label in islice(endless(windows(folder, "own")), len(whole))]
    assert whole == undisturbed
    for used in (2, PER_EPOCH) if steps else (PER_EPOCH, 2 * PER_EPOCH):
        checkpoint = tmp_path / "whole" / f"step={used}.ckpt"
        rest = train(windows(folder, "own", **options), tmp_path / "rest", checkpoint, max_epochs=3, steps=steps)
        assert rest == whole[used:], used


@pytest.mark.parametrize("options", [WORKERS[0], WORKERS[2]], ids=str)
def test_random_windows_of_torchdata_in_lightning(options: dict[str, Any], folder: Path, tmp_path: Path) -> None:
    """In the middle of an epoch; Lightning takes a loader of torchdata that is at its end for a whole epoch."""
    whole = train(windows(folder, "stateful", **options), tmp_path / "whole", max_epochs=2)
    assert len(whole) == 2 * PER_EPOCH
    for used in (2, PER_EPOCH + 2):
        checkpoint = tmp_path / "whole" / f"step={used}.ckpt"
        rest = train(windows(folder, "stateful", **options), tmp_path / "rest", checkpoint, max_epochs=2)
        assert rest == whole[used:], used


def test_a_sampler_that_was_replaced_is_noticed(folder: Path) -> None:
    loader = windows(folder, "own")
    other = type(loader)(loader.dataset, BATCH, sampler=range(3), collate_fn=loader.collate_fn)
    with pytest.raises(gerd.GerdError, match="use_distributed_sampler=False"):
        next(iter(other))
