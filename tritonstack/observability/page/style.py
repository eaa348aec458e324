"""How the page looks: three graphs beside each other at 1280 pixels, two on a narrower screen."""

STYLE = """
:root { --ink: #1d2733; --soft: #5c6875; --line: #e1e5ea; --card: #fff; --back: #f4f6f8; --fault: #b3261e; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink);
       font: 14px/1.4 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
main { width: 1280px; max-width: 100%; margin: 0 auto; padding: 20px 16px 28px; }
header { display: flex; justify-content: space-between; align-items: baseline; gap: 24px; }
h1 { font-size: 22px; margin: 0; }
header p { margin: 0; color: var(--soft); text-align: right; }
h2 { font-size: 17px; margin: 26px 0 2px; }
.note { margin: 0 0 2px; color: var(--soft); font-size: 13px; }
.graphs { display: grid; grid-template-columns: repeat(auto-fill, minmax(400px, 1fr)); gap: 12px; margin-top: 10px; }
figure { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: 9px 11px; }
figcaption { display: flex; justify-content: space-between; font-weight: 600; }
figcaption span { font-weight: 400; color: var(--soft); font-size: 12px; }
svg { display: block; width: 100%; height: auto; margin-top: 4px; }
polyline { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
line.grid { stroke: var(--line); stroke-width: 1; }
line.limit { stroke: var(--fault); stroke-dasharray: 5 4; }
text { font-size: 10.5px; fill: var(--soft); font-family: inherit; }
text.limit { fill: var(--fault); }
table { width: 100%; border-collapse: collapse; font-size: 12px; color: var(--soft); }
td, th { padding: 1px 0 1px 14px; text-align: right; font-weight: 400; white-space: nowrap; }
td:first-child, th:first-child { padding-left: 0; text-align: left; width: 99%; }
td { color: var(--ink); }
i { display: inline-block; width: 14px; height: 3px; border-radius: 2px; margin-right: 6px; vertical-align: middle; }
.empty { display: flex; align-items: center; justify-content: center; height: 190px; padding: 0 32px;
         color: var(--soft); text-align: center; }
.alarms { display: flex; flex-wrap: wrap; gap: 6px; margin: 12px 0 0; padding: 0; list-style: none; font-size: 12.5px; }
.alarms li { border: 1px solid var(--line); background: var(--card); border-radius: 11px; padding: 2px 9px; }
.alarms .ALARM { background: var(--fault); border-color: var(--fault); color: #fff; font-weight: 600; }
.alarms .INSUFFICIENT_DATA { color: var(--soft); border-style: dashed; }
"""
