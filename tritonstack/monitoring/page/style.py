"""How the page looks: three graphs beside each other at 1280 pixels, one on a telephone; dark where the system is."""

STYLE = """
:root { color-scheme: light dark; --ink: #1d2733; --soft: #5c6875; --line: #e1e5ea; --card: #fff; --back: #f4f6f8;
        --fault: #b3261e; --limit: #7a5a00; --c0: #0b62a4; --c1: #d4550a; --c2: #148a62; --c3: #8a4fae; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e9ef; --soft: #a3aeba; --line: #303944; --card: #1b2129; --back: #12161b;
          --fault: #c9372c; --limit: #d9b44a; --c0: #5fb0ee; --c1: #f08a4b; --c2: #45c197; --c3: #c08fe0; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink);
       font: 14px/1.4 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
main { width: 1280px; max-width: 100%; margin: 0 auto; padding: 20px 16px 28px; }
header { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: baseline; gap: 4px 24px; }
h1 { font-size: 22px; margin: 0; }
header p { margin: 0; color: var(--soft); }
h1 { overflow-wrap: anywhere; }
h2 { font-size: 17px; margin: 26px 0 2px; overflow-wrap: anywhere; }
.note { margin: 0 0 2px; color: var(--soft); font-size: 13px; }
.graphs { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(400px, 100%), 1fr));
          gap: 12px; margin-top: 10px; }
figure { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: 9px 11px; }
figcaption { display: flex; justify-content: space-between; font-weight: 600; }
figcaption span { font-weight: 400; color: var(--soft); font-size: 12px; }
svg { display: block; width: 100%; height: auto; margin-top: 4px; }
polyline { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
line.grid { stroke: var(--line); stroke-width: 1; }
.c0 { --own: var(--c0); } .c1 { --own: var(--c1); } .c2 { --own: var(--c2); } .c3 { --own: var(--c3); }
polyline { stroke: var(--own); }
circle { fill: var(--own); }
i { background: var(--own); }
line.limit { stroke: var(--limit); stroke-dasharray: 5 4; }
text { font-size: 10.5px; fill: var(--soft); font-family: inherit; }
text.limit { fill: var(--limit); }
table { width: 100%; border-collapse: collapse; font-size: 12px; color: var(--soft); }
td, th { padding: 1px 0 1px 14px; text-align: right; font-weight: 400; white-space: nowrap; }
td:first-child, th:first-child { padding-left: 0; text-align: left; width: 99%; }
td { color: var(--ink); }
i { display: inline-block; width: 14px; height: 3px; border-radius: 2px; margin-right: 6px; vertical-align: middle; }
.empty { display: flex; align-items: center; justify-content: center; height: 190px; padding: 0 32px;
         color: var(--soft); text-align: center; }
.alarms { display: flex; flex-wrap: wrap; gap: 6px; margin: 12px 0 0; padding: 0; list-style: none; font-size: 12.5px; }
.alarms li { border: 1px solid var(--line); background: var(--card); border-radius: 11px; padding: 2px 9px;
             overflow-wrap: anywhere; }
.alarms a { color: inherit; text-decoration: none; }
.alarms a:hover { text-decoration: underline; }
.alarms .ALARM { background: var(--fault); border-color: var(--fault); color: #fff; font-weight: 600; }
.alarms .INSUFFICIENT_DATA { color: var(--soft); border-style: dashed; }
"""
