"""The page itself: its sections in order, and how they look."""

from __future__ import annotations

from fdrsvm.data.rows import Rows
from fdrsvm.inspection import sections
from fdrsvm.inspection.markup import escape
from fdrsvm.model.linear_model import LinearModel

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>
:root {{ --page: #fff; --text: #1d2329; --soft: #5b6570; --rule: #d8dde2;
  --c0: #1f5f8b; --c1: #b3541e; --c2: #00795a; --c3: #a8457f; }}
@media (prefers-color-scheme: dark) {{ :root {{ --page: #14181c; --text: #e4e8ec; --soft: #9aa5b0;
  --rule: #343c44; --c0: #6db3e2; --c1: #e8935a; --c2: #4cc79f; --c3: #e08fc0; }} }}
* {{ box-sizing: border-box; }}
body {{ font: 16px/1.55 system-ui, sans-serif; color: var(--text); background: var(--page);
  max-width: 46rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; overflow-wrap: break-word; }}
h1 {{ font-size: 1.6rem; line-height: 1.2; }}
h2 {{ font-size: 1.2rem; margin: 2.2rem 0 .4rem; }}
h3 {{ font-size: 1rem; margin: 1.4rem 0 .3rem; }}
.verdict {{ border-left: .3rem solid var(--c1); padding-left: .7rem; }}
.note, footer {{ color: var(--soft); font-size: .9rem; }}
.scroll {{ overflow-x: auto; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: right; padding: .35rem .5rem; border-bottom: 1px solid var(--rule);
  vertical-align: top; }}
th {{ font-weight: 600; }}
th:first-child, td:first-child {{ text-align: left; }}
table.facts td {{ text-align: left; }}
thead + tbody td:first-child {{ white-space: nowrap; }}
svg {{ display: block; width: 100%; max-width: 34rem; height: auto; margin: .5rem 0; }}
svg text {{ font: 12px system-ui, sans-serif; fill: var(--soft); }}
.end {{ text-anchor: end; }} .mid {{ text-anchor: middle; }}
.grid {{ stroke: var(--rule); fill: none; }}
.mark {{ stroke: var(--soft); stroke-dasharray: 2 3; fill: none; }}
.line {{ fill: none; stroke-width: 2; stroke-linejoin: round; }}
path.s0 {{ stroke: var(--c0); }} path.s1 {{ stroke: var(--c1); }}
path.s2 {{ stroke: var(--c2); }} path.s3 {{ stroke: var(--c3); }}
circle.s0 {{ fill: var(--c0); }} circle.s1 {{ fill: var(--c1); }}
circle.s2 {{ fill: var(--c2); }} circle.s3 {{ fill: var(--c3); }}
path.dashed {{ stroke-dasharray: 6 4; }}
.legend {{ margin: 0 0 .8rem; font-size: .9rem; }}
.legend span {{ margin-right: 1.2rem; white-space: nowrap; }}
.legend i {{ display: inline-block; width: 1.4rem; height: 0; margin-right: .4rem;
  vertical-align: middle; border-top: 3px solid var(--soft); }}
.legend i.dot {{ width: 0; border: .3rem solid; border-radius: 50%; }}
.legend i.s0 {{ border-color: var(--c0); }} .legend i.s1 {{ border-color: var(--c1); }}
.legend i.s2 {{ border-color: var(--c2); }} .legend i.s3 {{ border-color: var(--c3); }}
.legend i.dashed {{ border-top-style: dashed; }} .legend i.mark {{ border-top-style: dotted; }}
.bars {{ display: grid; grid-template-columns: minmax(4rem, max-content) 1fr max-content;
  gap: .25rem .6rem; align-items: center; font-size: .9rem; max-width: 40rem; }}
.bars .name {{ max-width: 9rem; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }}
.bars .value {{ text-align: right; font-variant-numeric: tabular-nums; }}
.track {{ position: relative; height: .8rem; border-radius: 2px; }}
.track i {{ position: absolute; top: 0; bottom: 0; border-radius: 2px; background: var(--c0); }}
.track i.s1 {{ background: var(--c1); }}
.track.signed::before {{ content: ""; position: absolute; left: 50%; top: -.1rem; bottom: -.1rem;
  border-left: 1px solid var(--soft); }}
@media (max-width: 30rem) {{ th, td {{ padding: .3rem .25rem; font-size: .85rem; }} }}
</style>
</head>
<body>
<h1>{title}</h1>
{body}
<footer><p>Made by <code>fdrsvm report</code>. SHA-256 of the coefficients:
<code>{fingerprint}</code></p></footer>
</body>
</html>
"""


def model_page(
    model: LinearModel,
    rows: Rows | None = None,
    *,
    name: str = "model",
    sample: int | None = None,
    fault: str | None = None,
) -> str:
    """A page about one model.

    Parameters
    ----------
    model : LinearModel
        From a model file.
    rows : Rows, optional
        Data with labels; without them the page shows what the file alone tells.
    name : str
        What to call the model.
    sample : int, optional
        Row to explain, from 0; by default one that is neither easy nor hard to turn.
    fault : str, optional
        The class whose F1 counts, of two; by default the rarer one in training.

    Returns
    -------
    str
        HTML without references to anything outside it.
    """
    parts = [
        sections.verdict_line(model, rows),
        sections.summary(model, rows, fault),
        sections.certificate(model),
        sections.rounds(model),
    ]
    if rows is None:
        parts += [sections.stated_clients(model), sections.features(model, None)]
    else:
        parts += [
            sections.clients(model, rows),
            sections.features(model, rows),
            sections.radius(model, rows),
            sections.worst_case(model, rows),
            sections.turning(model, rows),
            sections.one_sample(model, rows, sample),
        ]
    return _PAGE.format(
        title=escape(f"FDR-SVM: {name}"),
        body="\n".join(part for part in parts if part),
        fingerprint=model.fingerprint,
    )
