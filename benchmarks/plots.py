"""Plots of `benchmarks.compare` as SVG, readable in light and dark, each with a text alternative."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import log10
from pathlib import Path

from benchmarks.compare_report import Comparison, Costs
from benchmarks.metrics import CUTS
from benchmarks.peers.catalogue import OURS, known

WIDTH, ROW, LABELS, TOP, PAD = 880, 30, 290, 64, 24
RADIUS = 6
_STYLE = """\
    .card { fill: #ffffff; stroke: #c9d1dc; }
    .grid { stroke: #d9dfe8; stroke-width: 1; }
    .link { stroke: #8ea3c2; stroke-width: 2; }
    .peer { fill: #5b7aa8; }
    .ours { fill: #c2571a; }
    .k5 { fill-opacity: 0.35; }
    .k10 { fill-opacity: 0.65; }
    text { font-family: system-ui, "Segoe UI", "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; }
    text { fill: #1c2736; font-size: 14px; }
    .title { font-size: 15px; font-weight: 600; }
    .note { font-size: 12px; fill: #44597a; }
    @media (prefers-color-scheme: dark) {
      .card { fill: #14181f; stroke: #38414f; }
      .grid { stroke: #38414f; }
      .link { stroke: #5d7396; }
      .peer { fill: #7f9fd0; }
      .ours { fill: #f0935a; }
      text { fill: #e8edf4; }
      .note { fill: #a9bddd; }
    }"""


def draw(compared: Sequence[Comparison], folder: Path) -> list[Path]:
    """Write the plots to a folder, and return their files."""
    folder.mkdir(parents=True, exist_ok=True)
    shown = {"compare-found.svg": found(compared), "compare-costs.svg": costs(compared[0])}
    for name, text in shown.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in shown]


def found(compared: Sequence[Comparison]) -> str:
    """Return a plot of the share of the gold pages that each peer finds, with a panel for each data set."""
    titles = _titles(compared)
    panel = (WIDTH - LABELS - PAD) // len(compared)
    parts, told = [*_labels(titles)], []
    for number, comparison in enumerate(compared):
        left, width = LABELS + number * panel, panel - PAD
        parts.append(_text(left, 30, comparison.dataset.name, "title"))
        for percent in (0, 25, 50, 75, 100):
            x = left + width * percent / 100
            parts.append(f'<path class="grid" d="M{x:.1f} {TOP - 12} V{TOP + ROW * len(titles)}"/>')
            parts.append(_text(x, 48, f"{percent}", "note", "middle"))
        for row, title in enumerate(titles):
            if title in comparison.results:
                shares = [comparison.found(title, k) for k in CUTS]
                parts += _dots(left, width, row, shares, _kind(title))
                told.append(f"{title} {' / '.join(f'{100 * share:.0f}' for share in shares)}")
        told[-1] += "."
    cuts = ", ".join(map(str, CUTS))
    parts.append(_text(PAD, TOP + ROW * len(titles) + 20, f"percent; pale to full: the first {cuts} pages", "note"))
    names = " and ".join(comparison.name for comparison in compared)
    return _svg(
        "compare-found",
        "Share of the gold pages that each memory finds",
        f"Share of the gold pages among the first {cuts} pages, percent, in {names}: {', '.join(told)}",
        parts,
        len(titles),
    )


def costs(comparison: Comparison) -> str:
    """Return a plot of what each peer takes: bars on logarithmic scales, a panel for each cost."""
    titles = _titles([comparison])
    taken = {title: Costs.of(comparison.results[title]) for title in titles}
    panels: Mapping[str, tuple[str, dict[str, float]]] = {
        "question, p50": ("ms", {title: each.question_ms[0] for title, each in taken.items()}),
        "start to answer": ("s", {title: each.start_s for title, each in taken.items()}),
        "memory": ("MB", {title: each.memory_mb for title, each in taken.items()}),
        "install": ("MB", {title: each.install_mb for title, each in taken.items()}),
    }
    panel = (WIDTH - LABELS - PAD) // len(panels)
    parts, told = [*_labels(titles)], []
    for number, (name, (unit, values)) in enumerate(panels.items()):
        left, width = LABELS + number * panel, panel - 58
        parts.append(_text(left, 30, name, "title"))
        parts.append(_text(left, 48, unit, "note"))
        least, most = min(values.values()), max(values.values())
        for row, (title, value) in enumerate(values.items()):
            length = width * (0.15 + 0.85 * log10(value / least) / max(log10(most / least), 1e-9))
            y = TOP + row * ROW
            shape = f'x="{left}" y="{y - 9}" width="{length:.1f}" height="18" rx="3"'
            parts.append(f'<rect class="{_kind(title)}" {shape}/>')
            parts.append(_text(left + length + 5, y + 5, _short(value), "note"))
        told.append(f"{name}: {', '.join(f'{title} {_short(value)} {unit}' for title, value in values.items())}.")
    parts.append(_text(PAD, TOP + ROW * len(titles) + 20, "logarithmic; shorter is better", "note"))
    what = f"What each memory takes, in {comparison.name}. {' '.join(told)}"
    return _svg("compare-costs", "What each memory takes", what, parts, len(titles))


def _titles(compared: Sequence[Comparison]) -> list[str]:
    return list(dict.fromkeys(title for comparison in compared for title in comparison.results))


def _labels(titles: Sequence[str]) -> Iterator[str]:
    for row, title in enumerate(titles):
        yield _text(PAD, TOP + row * ROW + 5, title, "title" if _kind(title) == "ours" else "")


def _dots(left: float, width: float, row: int, shares: Sequence[float], kind: str) -> Iterator[str]:
    y = TOP + row * ROW
    places = [left + width * share for share in shares]
    yield f'<path class="link" d="M{places[0]:.1f} {y} H{places[-1]:.1f}"/>'
    for k, x in zip(CUTS, places, strict=True):
        yield f'<circle class="card" cx="{x:.1f}" cy="{y}" r="{RADIUS}"/>'
        yield f'<circle class="{kind} k{k}" cx="{x:.1f}" cy="{y}" r="{RADIUS}"/>'


def _kind(title: str) -> str:
    return "ours" if title == known(OURS).title else "peer"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(name: str, title: str, description: str, parts: Sequence[str], rows: int) -> str:
    height = TOP + ROW * rows + 36
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-labelledby="{name}-title {name}-desc">',
        f'  <title id="{name}-title">{escape(title)}</title>',
        f'  <desc id="{name}-desc">{escape(description)}</desc>',
        f"  <style>\n{_STYLE}\n  </style>",
        f'  <rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="12"/>',
        *(f"  {part}" for part in parts),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"
