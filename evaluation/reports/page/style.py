"""The page's style sheet: light and dark, narrow and wide, screen and paper. No font or picture from elsewhere."""

from __future__ import annotations

_LIGHT = """
  --paper: #ffffff; --page: #f4f5f7; --ink: #1b1f24; --soft: #566069; --line: #d5dae0; --tint: #f1f4f7;
  --accent: #00598c; --track: #dfe4ea; --warning: #8f4700; --warning-tint: #fdf1e2; --fine: #17694a;
  --level-0: #a62b1f; --level-1: #a8480a; --level-2: #7d5a00; --level-3: #17694a; --level-4: #00598c;
  --level-none: #4b5660;
"""
_DARK = """
  --paper: #1c2126; --page: #13171b; --ink: #e8ebee; --soft: #a7b1bb; --line: #3a424b; --tint: #252b32;
  --accent: #7cc0f0; --track: #3f4852; --warning: #ffb870; --warning-tint: #33291d; --fine: #6fd0a8;
  --level-0: #cc4334; --level-1: #b4571a; --level-2: #8f6e0e; --level-3: #26805c; --level-4: #1d75ac;
  --level-none: #5d6975;
  --plot-paper: #1c2126; --plot-ink: #e8ebee; --plot-grey: #a7b1bb; --plot-pale: #7b8691; --plot-grid: #333b43;
  --plot-blue: #58b2ec; --plot-vermilion: #ff8a3d; --plot-green: #2fc79a; --plot-purple: #e3a3c5;
  --plot-sky: #8ad0f7; --plot-orange: #f0b43c;
"""
_SANS = """system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "DejaVu Sans", sans-serif"""
_MONO = """ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace"""

_BASE = f"""
:root {{ color-scheme: light dark;{_LIGHT}}}
@media screen and (prefers-color-scheme: dark) {{ :root {{{_DARK}}} }}
* {{ box-sizing: border-box; }}
html {{ -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }}
body {{ margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 {_SANS}; }}
code, pre, table.plain td.hash {{ font-family: {_MONO}; font-size: .86em; }}
"""

_TEXT = """
.wrap { max-width: 84rem; margin: 0 auto; padding: 1.5rem 1.25rem 3rem; }
h1, h2, h3 { line-height: 1.2; margin: 0; text-wrap: balance; overflow-wrap: anywhere; }
h2 { font-size: 1.4rem; margin: 0 0 .4rem; }
h3 { font-size: 1.05rem; margin: 1.5rem 0 .5rem; }
p { margin: .4rem 0; max-width: 48rem; overflow-wrap: anywhere; }
a { color: var(--accent); }
a:focus-visible, [tabindex]:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
small, .soft { color: var(--soft); }
small { font-size: .8em; }
section, header.verdict { background: var(--paper); border: 1px solid var(--line); border-radius: 12px;
  padding: 1.4rem 1.6rem 1.6rem; margin: 0 0 1.1rem; }
.lead { color: var(--soft); margin: 0 0 1rem; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
nav.contents { margin: 0 0 1.1rem; }
nav.contents ul { list-style: none; display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; padding: 0 .2rem; margin: 0;
  font-size: .92rem; }
.left-out { border: 1px dashed var(--line); border-radius: 8px; padding: .6rem .9rem; color: var(--soft); }
ul.checks { list-style: none; margin: 0; padding: 0; }
ul.checks li { display: grid; grid-template-columns: 6.5rem 1fr; gap: .2rem 1rem; padding: .55rem 0;
  border-bottom: 1px solid var(--line); }
ul.checks li > * { min-width: 0; margin: 0; }
.word { font-weight: 700; }
.word.warning, .word.error { color: var(--warning); }
.word.ok { color: var(--fine); }
.word.note { color: var(--accent); }
dl.terms { margin: .4rem 0; }
dl.terms dt { font-weight: 600; margin-top: .7rem; }
dl.terms dd { margin: .1rem 0 0; max-width: 48rem; }
pre { background: var(--tint); padding: .9rem 1rem; border-radius: 8px; margin: .4rem 0; white-space: pre-wrap;
  overflow-wrap: anywhere; }
.columns { display: grid; align-items: start; gap: 0 2rem;
  grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); }
footer { color: var(--soft); font-size: .85rem; padding: 0 .3rem; }
"""

_VERDICT = """
header.verdict { border-top: 8px solid var(--level); }
.eyebrow { text-transform: uppercase; letter-spacing: .07em; font-size: .78rem; color: var(--soft); margin: 0; }
.verdict h1 { font-size: 1.3rem; font-weight: 600; }
.stamp { display: inline-block; background: var(--level); color: #fff; font-weight: 700; font-size: 1.75rem;
  line-height: 1.15; padding: .35rem .9rem .42rem; border-radius: 8px; margin: .9rem 0 .3rem; }
header.verdict > .soft { max-width: 52rem; }
.sentence { font-size: 1.16rem; max-width: 54rem; }
.level-0 { --level: var(--level-0); }
.level-1 { --level: var(--level-1); }
.level-2 { --level: var(--level-2); }
.level-3 { --level: var(--level-3); }
.level-4 { --level: var(--level-4); }
.level-none { --level: var(--level-none); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(19rem, 100%), 1fr)); gap: 1rem;
  margin: 1.1rem 0 .8rem; padding: 0; list-style: none; }
.card { background: var(--tint); border-radius: 10px; padding: .9rem 1.1rem 1rem; border-left: 6px solid var(--level);
  min-width: 0; max-width: 36rem; }
.card p { margin: .2rem 0; }
.card .who { font-weight: 600; }
.card .rate { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 .6rem; font-size: 2.3rem; font-weight: 700;
  line-height: 1.15; letter-spacing: -.02em; }
.card .rate small { font-size: .95rem; font-weight: 400; letter-spacing: 0; }
.against { list-style: none; margin: .7rem 0 0; padding: 0; }
.against li { display: grid; grid-template-columns: minmax(6rem, 9.5rem) 4.2rem 1fr; gap: .2rem .7rem;
  align-items: center; padding: .3rem 0; }
.against small { grid-column: 1 / -1; }
.against strong { text-align: right; font-variant-numeric: tabular-nums; }
.against .ruler { min-width: 5rem; }
.explained { margin: 0 0 1rem; padding-left: 1.2rem; }
details { margin: .6rem 0; }
summary { cursor: pointer; color: var(--accent); font-weight: 600; }
.alerts { margin: .9rem 0 .7rem; padding: .55rem .9rem; border-radius: 8px; background: var(--warning-tint);
  color: var(--warning); font-weight: 600; max-width: none; }
.alerts a { color: inherit; }
.ruler { position: relative; display: block; height: 1.5rem; min-width: 8rem; }
.ruler .track { position: absolute; inset: .62rem 0 auto; height: .26rem; background: var(--track);
  border-radius: 9px; }
.ruler .tick { position: absolute; top: .42rem; width: 1px; height: .66rem; background: var(--soft); opacity: .55; }
.ruler .span { position: absolute; top: .5rem; height: .5rem; min-width: 2px; background: var(--level); opacity: .45;
  border-radius: 9px; }
.ruler .dot, .ruler .ring { position: absolute; top: .3rem; width: .9rem; height: .9rem; margin-left: -.45rem;
  border-radius: 50%; }
.ruler .dot { background: var(--level); border: 2px solid var(--paper); }
.ruler .ring { background: var(--paper); border: 3px solid var(--soft); }
.scale { display: flex; justify-content: space-between; gap: 1rem; font-size: .78rem; color: var(--soft);
  line-height: 1.25; }
.scale span:last-child { text-align: right; }
.meter { display: block; height: .6rem; min-width: 5rem; margin-top: .45rem; background: var(--track);
  border-radius: 9px; overflow: hidden; }
.meter span { display: block; height: 100%; background: var(--accent); }
"""

_TABLES = """
.scroll { overflow-x: auto; margin: .5rem 0; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); font-size: .88rem; padding: 0 0 .4rem; }
th, td { padding: .45rem .7rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
thead th { font-size: .84rem; color: var(--soft); font-weight: 600; border-bottom: 2px solid var(--line);
  vertical-align: bottom; }
tbody th { font-weight: 600; overflow-wrap: break-word; max-width: 16rem; }
th.group { background: var(--tint); font-size: .84rem; padding: .35rem .7rem; max-width: none; }
td { overflow-wrap: break-word; max-width: 16rem; }
table.plain td { max-width: none; }
table.plain tbody th { min-width: 7.5rem; max-width: 22rem; }
td small { display: block; white-space: nowrap; }
.number, th.number { text-align: right; }
.missing { color: var(--soft); }
td.strongest { background: var(--tint); font-weight: 700; }
td.strongest small { font-weight: 400; }
.mark { display: block; font-size: .74rem; font-weight: 600; color: var(--accent); }
td.wide { width: 26%; min-width: 9rem; }
table.small { font-size: .86rem; }
table.small td, table.small tbody th { white-space: nowrap; }
table.plain { margin: .5rem 0 1rem; }
table.plain td, table.plain th { padding: .28rem .7rem .28rem 0; font-size: .92rem; overflow-wrap: anywhere; }
table.plain td.hash { font-size: .78rem; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(38rem, 100%), 1fr)); gap: 1.2rem;
  margin: .6rem 0; }
figure { margin: 0; min-width: 0; }
figure.tall { grid-row: span 2; }
figure.wide svg.plot { max-width: 64rem; }
figcaption { font-size: .88rem; color: var(--soft); margin-top: .3rem; }
svg.plot { display: block; width: 100%; max-width: 44rem; height: auto; margin: 0 auto; fill: var(--ink); }
svg.plot * { stroke-linejoin: round; stroke-linecap: butt; }
"""

_NARROW = """
@media screen and (max-width: 44rem) {
  .wrap { padding: .7rem .6rem 2rem; }
  section, header.verdict { padding: 1rem .9rem 1.1rem; border-radius: 10px; }
  .stamp { font-size: 1.45rem; }
  header.verdict > .soft { max-width: 52rem; }
.sentence { font-size: 1.05rem; }
  th, td { padding: .4rem; }
  table.grid { font-size: .9rem; }
  .optional { display: none; }
  figure.tall { grid-row: auto; }
  /* the words in a plot stay readable: it is wider than the screen, and can be pushed aside */
  figure { overflow-x: auto; }
  figure svg.plot { min-width: 38rem; }
  figcaption { position: sticky; left: 0; }
  ul.checks li { grid-template-columns: 1fr; }
  /* each row becomes a block, each cell a line with its column's name */
  table.stack, table.stack tbody, table.stack tr, table.stack th, table.stack td, table.stack caption {
    display: block; width: auto; max-width: none; }
  table.stack thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  table.stack tr { border-bottom: 2px solid var(--line); padding: .5rem 0; }
  table.stack th, table.stack td { border: 0; padding: .12rem 0; text-align: left; min-width: 0; }
  table.stack th.group { padding: .35rem .5rem; }
  table.stack td[data-name] { display: grid; grid-template-columns: 38% 1fr; gap: .5rem; align-items: baseline; }
  table.stack td[data-name] > span { min-width: 0; overflow-wrap: anywhere; }
  table.stack td[data-name]::before { content: attr(data-name); color: var(--soft); font-size: .88rem;
    font-weight: 400; }
  table.stack td small, .mark { display: inline; }
}
"""

_PRINT = """
@media print {
  @page { size: A4; margin: 14mm 13mm; }
  body { background: #fff; font-size: 9pt; }
  html { font-size: 9pt; }
  .cards { grid-template-columns: repeat(auto-fit, minmax(52mm, 1fr)); }
  .wrap { max-width: none; padding: 0; }
  section, header.verdict { border-width: 1px 0 0; border-color: #bbb; border-radius: 0; padding: 3mm 0;
    margin: 0 0 3mm; }
  header.verdict { border-top: 8px solid var(--level); }
  section, header.verdict, .card, pre, th.group, td.strongest, .alerts { background: none; }
  .card { border: 1px solid #bbb; border-left: 6px solid var(--level); }
  .stamp { background: none; color: var(--level); border: 3px solid var(--level); }
  .alerts { border: 1px solid var(--warning); }
  .ruler *, .meter, .meter span, header.verdict { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  nav.contents { display: none; }
  thead { display: table-header-group; }
  p, tr, figure, .card, ul.checks li, dl.terms dd, table.stack { break-inside: avoid; }
  table.grid:not(:has(tbody + tbody, tr:nth-child(20))) { break-inside: avoid; }
  h2, h3, caption, dt, .lead, tr:has(th.group) { break-after: avoid; }
  .scroll { overflow: visible; }
  .plots { grid-template-columns: 1fr; gap: 6mm; }
  svg.plot { max-width: 122mm; }
  figure.tall svg.plot { max-width: 108mm; }
  figure { break-inside: avoid; }
  section.newpage { break-before: page; }
  a { color: inherit; text-decoration: none; }
  pre { border: 1px solid #ccc; }
  table.stack { font-size: 8pt; }
  table.stack th, table.stack td { padding: 1.2mm 1mm; }
  table.stack td small { white-space: normal; }
  table.stack td:nth-child(3) { min-width: 30mm; }
  table.stack td.wide { width: 16%; min-width: 0; }
  table.grid th, table.grid td { padding: .8mm 2mm; }
  table.small { font-size: 7.5pt; }
  table.small th, table.small td { padding: 1mm; }
}
"""

STYLE = _BASE + _TEXT + _VERDICT + _TABLES + _NARROW + _PRINT
