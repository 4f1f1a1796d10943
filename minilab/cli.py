"""The command `minilab`: train, show, sweep, data, shards, bench, cards."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from minilab import __version__
from minilab.data import fetch, open_images
from minilab.files import check_writable, one_writer, written_aside
from minilab.recipe import ALTERNATIVES, METHODS, NORMS, OPTIMIZERS, PRECISIONS, Recipe
from minilab.shortage import is_out_of_memory

SHAPES_BATCH = 64  # ten epochs of 10,000 images are 390 steps of 256: too few for MoCo to learn Shapes
TYPES = {"int": int, "int | None": int, "float": float, "str": str, "float | None": float}


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code: 0, or 2 where an argument, a file or the memory is wrong."""
    parser = _parser()
    options = parser.parse_args(arguments)
    for name, value in vars(options).items():
        if value == [] and name != "grids":  # what argparse makes of --out=--
            parser.error(f"argument --{name}: expected one argument")
    try:
        options.run(options)
    except (ValueError, OSError, FloatingPointError) as error:
        print(f"minilab {options.command}: {error}", file=sys.stderr)
        return 2
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        print(f"minilab {options.command}: {str(error) or 'out of memory'}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"\nminilab {options.command}: stopped", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="minilab", description="Train SimCLR and MoCo on small images, and look.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    _add_train(commands.add_parser("train", help="train one method and draw what it learned"))
    show = commands.add_parser("show", help="draw a recorded run")
    show.add_argument("record", type=Path, help="a record that `minilab train --out` wrote")
    show.add_argument("--picture", type=Path, help="where to draw it (default: the record's name with .png)")
    show.set_defaults(run=_show)
    _add_sweep(commands.add_parser("sweep", help="train the book's recorded runs, or those that are missing"))
    data = commands.add_parser("data", help="fetch CIFAR-10 (170 MB), checked and resumable")
    data.add_argument("--root", type=Path, help="folder for it (default: $MINILAB_DATA, else ~/.cache/minilab)")
    data.add_argument("--measure", action="store_true", help="fetch nothing; measure how hard Shapes is, in a minute")
    data.set_defaults(run=_data)
    shards = commands.add_parser("shards", help="gather embeddings over real processes, rightly and wrongly")
    shards.add_argument("--data", default="auto", help="cifar10, shapes, or auto")
    shards.add_argument("--processes", type=int, default=4, help="(default: %(default)s)")
    shards.add_argument("--images", type=int, default=64, help="of one batch, all processes (default: %(default)s)")
    shards.add_argument("--epochs", type=int, default=2, help="of SimCLR before that (default: %(default)s)")
    shards.set_defaults(run=_shards)
    bench = commands.add_parser("bench", help="speed of each method beside its bare encoder")
    bench.add_argument("--encoder", default="tiny")
    bench.add_argument("--batch", type=int, default=256)
    bench.add_argument("--precision", default="auto", help=f"one of {', '.join(PRECISIONS)}")
    bench.add_argument("--json", type=Path, help="also write the figures here")
    bench.set_defaults(run=_bench)
    _add_cards(commands.add_parser("cards", help="the book's questions: ask them here, list them, take them along"))
    return parser


def _add_train(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("method", help=f"one of {', '.join(METHODS + ALTERNATIVES)}")
    parser.add_argument("--data", default="auto", help="cifar10, shapes, or auto: CIFAR-10 if it is here, else Shapes")
    parser.add_argument("--images", type=int, default=10_000, help="training images (default: %(default)s)")
    choices = {"optimizer": OPTIMIZERS, "precision": PRECISIONS, "norm": NORMS}
    for field in fields(Recipe):
        flag = f"--{field.name.replace('_', '-')}"
        if field.name == "method":
            continue
        if field.name == "batch":
            help_text = f"(default: {field.default}; {SHAPES_BATCH} on Shapes)"
            parser.add_argument(flag, type=int, help=help_text)
        elif field.type == "bool":
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, default=field.default)
        else:
            allowed = f"; one of {', '.join(choices[field.name])}" if field.name in choices else ""
            help_text = f"(default: {'a rule' if field.default is None else field.default}{allowed})"
            parser.add_argument(flag, type=TYPES[str(field.type)], default=field.default, help=help_text)
    parser.add_argument("--device", help="cpu, cuda, ... (default: the GPU if there is one)")
    parser.add_argument("--compile", action="store_true", help="torch.compile the networks; on a GPU only")
    parser.add_argument("--out", type=Path, help="write the record here, as JSON")
    parser.add_argument("--checkpoint", type=Path, help="resume from this file if it is there; save to it")
    parser.add_argument("--picture", type=Path, help="draw what was learned here (default: METHOD.png)")
    parser.set_defaults(run=_train)


def _add_sweep(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("grids", nargs="*", metavar="GRID", help="names that --list shows, or all")
    parser.add_argument("--list", action="store_true", help="say which grids are complete, and train nothing")
    parser.add_argument("--out", type=Path, help="folder of the records (default: minilab/records/runs)")
    parser.add_argument("--workers", type=int, help="runs at a time (default: one a core)")
    parser.add_argument(
        "--ray", nargs="?", const="local", metavar="ADDRESS", help="on a Ray cluster: local, or its address"
    )
    parser.set_defaults(run=_sweep)


def _add_cards(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True)
    ask = actions.add_parser("quiz", help="ask some, one after the other")
    ask.add_argument("--seed", type=int, help="draws the order; the same seed asks the same (default: by chance)")
    ask.add_argument("--count", type=int, default=10, help="how many to ask (default: %(default)s)")
    for action in (ask, actions.add_parser("list", help="name each card")):
        action.add_argument("--tier", help="basics, solid or deep")
        action.add_argument("--topic", help="the name of a file of cards")
    for name, what in (("deck", "write an Anki deck (.apkg)"), ("json", "write what the practice page reads")):
        actions.add_parser(name, help=what).add_argument("--out", type=Path, required=True, metavar="FILE")
    parser.set_defaults(run=_cards)


def _sweep(options: argparse.Namespace) -> None:
    from minilab import sweep
    from minilab.grids import GRIDS
    from minilab.records.store import RUNS

    folder = options.out or RUNS
    if options.list:
        print(sweep.listing(folder))
        return
    if not options.grids:
        raise ValueError(f"no grid is named; allowed: all, {', '.join(GRIDS)}")
    names = [name for name in GRIDS if name != "smoke"] if options.grids == ["all"] else options.grids
    cells = sweep.pending(names, folder)
    print(f"{len(cells)} runs to train; their records go to {folder}", file=sys.stderr)
    workers = sweep.cores() if options.workers is None else options.workers
    if not cells:
        troubles = {}
    elif options.ray:
        troubles = sweep.sweep_on_ray(cells, folder, workers, None if options.ray == "local" else options.ray)
    else:
        troubles = sweep.sweep(cells, folder, workers)
    for name, trouble in troubles.items():
        print(f"\n{name}:\n{trouble}", file=sys.stderr)
    if troubles:
        raise SystemExit(f"{len(troubles)} of {len(cells)} runs failed; the same command tries those again")


def _train(options: argparse.Namespace) -> None:
    from minilab.distributed import join_torchrun, leave_torchrun, rank
    from minilab.pictures import picture_of_run
    from minilab.records import record_of, save_record
    from minilab.training import pick_device, train

    given = {field.name: getattr(options, field.name) for field in fields(Recipe)}
    recipe = Recipe(**{name: value for name, value in given.items() if name != "batch" or value is not None})
    picture = options.picture or Path(f"{recipe.method}.png")
    for path in (options.out, options.checkpoint, picture):
        if path is not None:
            check_writable(path)
    images = open_images(options.data)
    images = images.subset(options.images)
    if options.batch is None and images.name.startswith("Shapes"):
        recipe = replace(recipe, batch=SHAPES_BATCH)
    device = join_torchrun()  # one of several processes that share a run, if torchrun has started them
    first = rank() == 0
    if first:
        print(f"{recipe.method} on {images.name}, {len(images.train)} images, {recipe.epochs} epochs", file=sys.stderr)
    device = device or pick_device(options.device)
    compiled = options.compile and device.type != "cpu"
    if options.compile and not compiled:
        print("--compile does nothing on the CPU, where compiling takes minutes", file=sys.stderr)
    with one_writer(options.out if first else None):
        run = train(recipe, images, device=device, checkpoint=options.checkpoint, compile=compiled)
        leave_torchrun()
        if not first:
            return
        _print_history(run.history)
        if options.out is not None:
            save_record(record_of(run), options.out)
            print(f"record: {options.out}")
    _save_figure(picture_of_run(recipe, images, run.encoder, run.history), picture)


def _print_history(history: list[dict[str, float]]) -> None:
    print("epoch   loss  chance    kNN  spread  rank  images/s")
    for entry in history:
        print(
            f"{entry['epoch']:5d} {entry['loss']:6.3f} {entry['loss_reference']:7.3f} {entry['knn']:6.3f} "
            f"{entry['spread']:7.3f} {entry['effective_rank']:5.1f} {entry['images_per_second']:9,.0f}"
        )


def _show(options: argparse.Namespace) -> None:
    from minilab.pictures import picture_of_history
    from minilab.records import load_record

    record = load_record(options.record)
    _print_history(record.history)
    _save_figure(
        picture_of_history(record.recipe, record.data["name"], record.history),
        options.picture or options.record.with_suffix(".png"),
    )


def _save_figure(figure: Any, path: Path) -> None:
    with written_aside(path) as file:
        figure.savefig(file, format="png", dpi=150)
    print(f"picture: {path}")


def _data(options: argparse.Namespace) -> None:
    if options.measure:
        from minilab.shapes import measure

        for name, accuracy in measure().items():
            print(f"{name:11s} {accuracy:.3f}")
    else:
        print(f"CIFAR-10 is in {fetch(options.root)}")


def _shards(options: argparse.Namespace) -> None:
    import torch

    from minilab.pitfalls.sharding import check_shards, compare, table
    from minilab.simclr import SimCLR
    from minilab.training import train
    from minilab.views import two_views

    recipe = Recipe("simclr", batch=64, epochs=options.epochs)
    images = open_images(options.data)
    images = images.subset(min(5_000, len(images.train)))
    if not 4 <= options.images <= len(images.train):
        raise ValueError(f"images is {options.images}; allowed: 4 to {len(images.train)}")
    check_shards(options.images, options.processes)
    method = train(recipe, images, device="cpu").method
    assert isinstance(method, SimCLR)
    views = two_views(images.train[: options.images], torch.Generator().manual_seed(0))
    print(table(compare(method, recipe, views, options.processes)))


def _bench(options: argparse.Namespace) -> None:
    from minilab.bench import bench, table

    if options.json is not None:
        check_writable(options.json)
    figures = bench(options.encoder, options.batch, options.precision)
    print(table(figures))
    if options.json is not None:
        with written_aside(options.json) as file:
            file.write(json.dumps(figures, indent=1).encode() + b"\n")


def _cards(options: argparse.Namespace) -> None:
    from minilab.textbook import terminal

    if options.action == "quiz":
        terminal.quiz(options.tier, options.topic, options.seed, options.count)
    elif options.action == "list":
        terminal.list_cards(options.tier, options.topic)
    elif options.action == "deck":
        from minilab.textbook.anki import write_deck

        print(f"{write_deck(options.out)} notes: {options.out}")
    else:
        terminal.write_json(options.out)
        print(f"cards: {options.out}")


if __name__ == "__main__":
    sys.exit(main())
