"""`evalkit router`: fit a router on labels, and score items with any router that evalkit runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evalkit.cli.lazy import WholeGroup
from evalkit.cli.router_verifier import register

__all__ = ["app"]

app = typer.Typer(
    help="Fit a router on labels, and score items with one.",
    no_args_is_help=True,
    rich_markup_mode=None,
    cls=WholeGroup,
)

_Study = Annotated[Path, typer.Argument(help="A routing study (YAML).")]
_Router = Annotated[
    str | None, typer.Option("--router", metavar="NAME", help="Which of several routers of the study.")
]
_Json = Annotated[Path | None, typer.Option("--json", help="Write what the router is here as JSON.")]
_Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but notices.")]


@app.command()
def fit(
    study: _Study,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder to write, for model: in the study.")],
    router: _Router = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a fitted router that is there.")] = False,
    seed: Annotated[int | None, typer.Option("--seed", help="In place of the study's seed.")] = None,
    json_file: _Json = None,
    quiet: _Quiet = False,
) -> None:
    """Fit a classifier or semantic router on the labels its study names under train.

    One with trained_on: cross_fitted is fitted on the judged labels, a model a fold, and their mean is deployed:
    approximate, never certified on those labels. Nothing is pickled, and no text is kept.
    """
    from evalkit.workflows.router_fit import fit_command

    fit_command(study, router=router, out=out, force=force, seed=seed, json_file=json_file, quiet=quiet)


@app.command()
def embed(
    study: _Study,
    router: _Router = None,
    max_spend: Annotated[
        str | None, typer.Option("--max-spend", help="USD that embeddings may cost in all, never passed.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say how many calls it takes, and call nobody.")
    ] = False,
    quiet: _Quiet = False,
) -> None:
    """Collect the embeddings of a semantic router whose embedding is a model of LiteLLM: embedding: openai/NAME.

    Each training and judged text is asked for once and kept in embeddings.sqlite beside the study; fit, score and
    route-sweep read them there and call nobody. The same command resumes. Exit codes: 0 done, 2 usage or input
    error, 4 not complete yet (nothing is lost).
    """
    from evalkit.workflows.replay_options import usd
    from evalkit.workflows.router_embed import embed_command

    cap = usd("--max-spend", max_spend)
    raise typer.Exit(embed_command(study, router=router, max_spend_usd=cap, dry_run=dry_run, quiet=quiet))


@app.command()
def score(
    study: _Study,
    out: Annotated[Path, typer.Option("--out", help="Scores to write: .csv, .jsonl or .parquet.")],
    router: _Router = None,
    seed: Annotated[int | None, typer.Option("--seed", help="In place of the study's seed.")] = None,
    json_file: _Json = None,
    quiet: _Quiet = False,
) -> None:
    """Score the labels of a study with a router that evalkit runs: rules, classifier, semantic or python.

    Refuses a router that was trained on these items, and names the items that leaked into its training.
    """
    from evalkit.workflows.router_score import score_command

    score_command(study, router=router, out=out, seed=seed, json_file=json_file, quiet=quiet)


register(app)
