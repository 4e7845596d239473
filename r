<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Fencepost: bundled</title>
<style>
:root {
  color-scheme: light dark;
  --paper: #ffffff; --ink: #1b1f24; --soft: #57606a; --line: #d0d7de; --panel: #f6f8fa; --accent: #0550ae;
  --pass: #1a7f37; --fail: #b3261e; --known: #8a5300; --inconclusive: #7a4d00; --unsupported: #57606a;
  --empty: #e3e6ea; --preparing: #ffe3a8; --completing: #bcd9ff; --stable: #bfe8c8; --dead: #d5d5d5;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #0d1117; --ink: #e6edf3; --soft: #9aa4af; --line: #30363d; --panel: #161b22; --accent: #79c0ff;
    --pass: #56d364; --fail: #ff8a80; --known: #e3b341; --inconclusive: #e3b341; --unsupported: #9aa4af;
    --empty: #2a3038; --preparing: #5a4310; --completing: #123a66; --stable: #14492a; --dead: #3a3a3a;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: .5rem 0; }
h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.25rem 0 .25rem; }
a { color: var(--accent); }
a:focus-visible, summary:focus-visible, button:focus-visible, input:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
code, pre, .mono { font: .875rem/1.45 ui-monospace, monospace; }
pre { background: var(--panel); border: 1px solid var(--line); padding: .5rem; overflow-x: auto; white-space: pre-wrap; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .25rem .5rem; border-bottom: 1px solid var(--line);
  overflow-wrap: break-word; }
td.number, th.number { text-align: right; }
.scroll { overflow-x: auto; max-width: 100%; }
.banner { border-left: 4px solid var(--known); background: var(--panel); padding: .5rem .75rem; }
.soft { color: var(--soft); }
.pass { color: var(--pass); } .fail { color: var(--fail); } .known { color: var(--known); }
.inconclusive { color: var(--inconclusive); } .unsupported, .not-observed { color: var(--unsupported); }
.verdict { font-weight: 600; white-space: nowrap; }
.map { display: grid; grid-template-columns: max-content 1fr; gap: .25rem .75rem; align-items: start; }
.map ul { list-style: none; margin: 0; padding: 0; display: flex; flex-wrap: wrap; gap: 2px; }
.map a { display: block; width: 1.5rem; height: 1.5rem; line-height: 1.5rem; text-align: center; text-decoration: none;
  background: var(--panel); border: 1px solid var(--line); font-weight: 600; }
.cause { border: 1px solid var(--line); padding: 0 1rem 1rem; margin: 1rem 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .125rem 1rem; margin: .5rem 0; }
dt { color: var(--soft); } dd { margin: 0; }
@media (max-width: 40rem) { dl, .map { grid-template-columns: 1fr; } dd { margin-bottom: .375rem; } }
input[type=search] { width: 100%; max-width: 24rem; padding: .375rem .5rem; font: inherit; color: inherit; background: var(--panel); border: 1px solid var(--line); }
button { font: inherit; color: inherit; background: var(--panel); border: 1px solid var(--line); padding: .125rem .5rem; cursor: pointer; }
svg.sequence, svg.phases, svg.timeline { display: block; font: 12px ui-monospace, monospace; }
svg text { fill: var(--ink); }
.lane { stroke: var(--line); } .lane-name { font-weight: 600; }
svg .time, svg .pause, svg .phase-name, svg .soft { fill: var(--soft); font-size: 11px; }
svg .phase-name { fill: var(--ink); }
.phase-empty { fill: var(--empty); } .phase-preparing { fill: var(--preparing); } .phase-completing { fill: var(--completing); }
.phase-stable { fill: var(--stable); } .phase-dead { fill: var(--dead); }
.parked { fill: none; stroke: var(--soft); }
.step line { stroke: var(--ink); } .step polygon { fill: var(--ink); } .step polyline, .step path { stroke: var(--fail); fill: none; stroke-width: 2; }
.step.response line, .step.no-response line { stroke-dasharray: 5 3; }
.step text { paint-order: stroke; stroke: var(--paper); stroke-width: 4px; }
.step.wrong line { stroke: var(--fail); stroke-width: 2.5; } .step.wrong polygon { fill: var(--fail); }
.step.wrong text { fill: var(--fail); font-weight: 700; }
svg.phases .node { fill: var(--panel); stroke: var(--line); } svg.phases path { fill: none; stroke: var(--soft); }
svg.phases path.missed { stroke-dasharray: 4 4; }
.stuck { stroke: var(--fail); stroke-width: 2; }
@media print { body { max-width: none; } details > * { display: block; } }
</style>
</head>
<body>
<main><header><h1>NO VIOLATION: 1 of 1 requirement checked (selected), none violated.</h1><p class="banner">Only a part was put to the test: selected.</p><dl><dt>target</dt><dd>bundled</dd><dt>kit</dt><dd>Fencepost 0.1.0, 302 requirements, catalogue fbbda97d6c34</dd><dt>run</dt><dd>seed 0, 1 schedules, 8 events, 0.04 s</dd></dl></header>
<section id="map"><h2>Requirements</h2><div class="map"><div>HB</div><ul><li><a href="#HB-05" class="pass" title="HB-05 pass: Heartbeat in Stable" aria-label="HB-05 pass: Heartbeat in Stable">✓</a></li></ul></div><div class="scroll" tabindex="0" role="region" aria-label="verdicts by tier"><table aria-label="verdicts by tier"><thead><tr><th scope="col">tier</th><th scope="col">of</th><th scope="col">pass</th><th scope="col">fail</th><th scope="col">known</th><th scope="col">unsupported</th><th scope="col">not-observed</th><th scope="col">inconclusive</th></tr></thead><tbody><tr><td>core</td><td>1</td><td>1</td><td>0</td><td>0</td><td>0</td><td>0</td><td>0</td></tr></tbody></table></div></section>
<section id="requirements"><h2>All requirements</h2><details><summary>1 requirements</summary><p hidden><label>Filter: <input id="filter" type="search" placeholder="JOIN, fail, generation"></label></p><div class="scroll" tabindex="0" role="region" aria-label="all requirements"><table id="requirements-table"><thead><tr><th scope="col">id</th><th scope="col">verdict</th><th scope="col">requirement</th><th scope="col">checks</th></tr></thead><tbody><tr id="HB-05"><td>HB-05</td><td><span class="verdict pass">✓ pass</span></td><td><b>Heartbeat in Stable</b> (MUST, core)<br>In Stable a Heartbeat of a member succeeds.<br><span class='soft'>HeartbeatRequestTest.</span></td><td>1</td></tr></tbody></table></div></details></section></main><script type="application/json" id="report">{"fencepost":2,"kit":{"version":"0.1.0","requirements":302,"catalogue":"fbbda97d6c34caa02040b2988d9263a4fd128b608a318ff57f4e48f016a34bb9"},"subject":"coordinator","target":{"name":"bundled"},"outcome":{"exit":0,"headline":"NO VIOLATION: 1 of 1 requirement checked (selected), none violated.","scope":"selected","checked":1,"verdicts":{"pass":1,"fail":0,"known":0,"unsupported":0,"not-observed":0,"inconclusive":0}},"tiers":{"core":{"pass":1}},"causes":[],"requirements":[{"id":"HB-05","level":"MUST","tier":"core","needs":[],"title":"Heartbeat in Stable","sentence":"In Stable a Heartbeat of a member succeeds.","source":"HeartbeatRequestTest","since":"","verdict":"pass","note":"","causes":[],"checks":1,"failures":[]}],"unclassified":[],"idle_findings":[],"undecided":[],"seed":0,"schedules":1,"events":8,"seconds":0.04,"cut_short":false,"rules":{}}</script>
<script>
"use strict";
for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "copied";
  });
}
const filter = document.getElementById("filter");
if (filter) {
  const rows = [...document.querySelectorAll("#requirements-table tbody tr")];
  filter.parentElement.hidden = false;
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/);
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
}
function reveal() {
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let node = place; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
  if (place) place.scrollIntoView();
}
addEventListener("hashchange", reveal);
reveal();
</script>
</body>
</html>
