"""The look of the page: one style sheet, light and dark."""

STYLE = """
:root {
  color-scheme: light dark;
  --page: #f6f7f7; --sheet: #ffffff; --ink: #1c2526; --quiet: #5d6a6c; --hair: #dde3e3; --track: #edf1f1;
  --compute: #2f8479; --seam: #ffffff; --limit: #1c2526;
  --level-0: #c3cfe6; --level-1: #a9bbdf; --level-2: #90a6d7; --level-3: #7890cd;
  --level-4: #617ac1; --level-5: #4c64b1; --level-6: #394f9d; --level-7: #283a85;
  --heat-0: #f0c47b; --heat-1: #e9a35f; --heat-2: #dc7f4b; --heat-3: #c65a3d; --heat-4: #a53a35;
  --good: #1f7a5c; --bad: #a8472f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #121617; --sheet: #191f20; --ink: #e2e8e8; --quiet: #93a1a3; --hair: #2b3435; --track: #222a2b;
    --compute: #4aa698; --seam: #191f20; --limit: #e2e8e8;
    --level-0: #3e4b6c; --level-1: #475883; --level-2: #516699; --level-3: #5d75b0;
    --level-4: #6a84c3; --level-5: #8099d6; --level-6: #9db2e6; --level-7: #c2d1f5;
    --heat-0: #6b4a2f; --heat-1: #8f5a35; --heat-2: #b86c3d; --heat-3: #de8650; --heat-4: #fbb07c;
    --good: #6cc3a3; --bad: #e39078;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
main { max-width: 1080px; margin: 0 auto; padding: 56px 24px 72px; }
h1 { margin: 0 0 14px; font-size: 30px; line-height: 1.25; font-weight: 600; text-wrap: balance; }
h2 { margin: 0 0 4px; font-size: 19px; font-weight: 600; }
h3 { margin: 26px 0 6px; font-size: 15px; font-weight: 600; }
p { margin: 0 0 14px; max-width: 68ch; }
.scenario, .explanation, footer { color: var(--quiet); }
.scenario { margin-bottom: 6px; }
.lead { font-size: 18px; }
section {
  margin-top: 28px; padding: 26px 28px; background: var(--sheet); border: 1px solid var(--hair); border-radius: 10px;
}
footer { margin-top: 28px; font-size: 14px; }
article + article, .overview + article { margin-top: 72px; }
.overview { margin-top: 0; }
a { color: inherit; }
figure { margin: 0; overflow-x: auto; }
svg { display: block; width: 100%; min-width: 720px; height: auto; font: 13px/1 inherit; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; white-space: nowrap; }
th, td { padding: 8px 0 8px 20px; text-align: right; border-bottom: 1px solid var(--hair); }
th { font-weight: 500; font-size: 14px; color: var(--quiet); vertical-align: bottom; }
th:first-child, td:first-child { padding-left: 0; text-align: left; }
tbody tr:last-child td { border-bottom: 0; }
.good { color: var(--good); } .bad { color: var(--bad); }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 10px 0 16px; padding: 0; list-style: none; }
.legend { font-size: 14px; color: var(--quiet); }
.legend li { display: flex; align-items: center; gap: 7px; }
.legend svg { flex: none; width: 16px; min-width: 16px; height: 12px; }
.legend line { stroke-width: 3; }
text { fill: var(--ink); font-size: 13px; font-variant-numeric: tabular-nums; }
.label { font-weight: 600; }
.note, .tick { fill: var(--quiet); font-size: 12px; }
.name { font-size: 12px; }
.track { fill: var(--track); }
.compute { fill: var(--compute); }
.rule { stroke: var(--hair); stroke-width: 1; }
.seam { stroke: var(--seam); stroke-width: 1.5; }
.event { stroke: var(--bad); stroke-width: 1.5; stroke-dasharray: 5 3; }
.capacity { stroke: var(--quiet); stroke-width: 1; }
.ideal { stroke: var(--limit); stroke-width: 2; }
.bound { stroke: var(--limit); stroke-width: 2; stroke-dasharray: 3 3; }
.node { fill: var(--sheet); stroke: var(--quiet); rx: 5px; }
.host { fill: var(--track); }
.cable { fill: none; stroke-linecap: round; }
.idle { stroke: var(--hair); stroke-width: 1; }
.level-0 { fill: var(--level-0); } .level-1 { fill: var(--level-1); } .level-2 { fill: var(--level-2); }
.level-3 { fill: var(--level-3); } .level-4 { fill: var(--level-4); } .level-5 { fill: var(--level-5); }
.level-6 { fill: var(--level-6); } .level-7 { fill: var(--level-7); }
.heat-0 { stroke: var(--heat-0); } .heat-1 { stroke: var(--heat-1); } .heat-2 { stroke: var(--heat-2); }
.heat-3 { stroke: var(--heat-3); } .heat-4 { stroke: var(--heat-4); }
.curve { fill: none; stroke-width: 2; stroke-linejoin: round; }
.curve-0 { stroke: var(--compute); } .curve-1 { stroke: var(--heat-0); } .curve-2 { stroke: var(--level-3); }
.curve-3 { stroke: var(--heat-4); } .curve-4 { stroke: var(--limit); }
"""
