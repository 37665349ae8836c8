"""Measures `selu check --watch` from the outside: `scripts/bench watch`.

One manifest is edited again and again; a field comes and goes in it that is a finding, so that every report is another.
Measured is from before the file is written until the new report is printed whole.
"""
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time

TARGET_MS = 50  # of a project of 1,000 capabilities


def run(options, program, projects):
    """`projects` makes a project of a size, one after the other."""
    rows = []
    for size, project in projects:
        taken = edits(program, project, options.runs)
        rows.append({"capabilities": size, "median_ms": statistics.median(taken), "worst_ms": max(taken), "runs": taken})
        line = "{capabilities:>7} capabilities: {median_ms:.1f} ms from the edit to the report, {worst_ms:.1f} ms at worst"
        print(line.format(**rows[-1]), file=sys.stderr if options.json else sys.stdout, flush=True)
    if options.json:
        print(json.dumps(rows, indent=2))
        return 0
    return 1 if any(row["median_ms"] > TARGET_MS for row in rows if row["capabilities"] <= 1000) else 0


def edits(program, project, runs):
    manifests = sorted(os.path.join(folder, "manifest.yaml")
                       for folder, _, names in os.walk(project) if "manifest.yaml" in names)
    path = manifests[len(manifests) // 2]
    with open(path, encoding="utf-8") as file:
        text = file.read()
    child = subprocess.Popen([program, "check", "--watch", project], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True)
    # A report that nobody reads would not end.
    threading.Thread(target=child.stdout.read, daemon=True).start()
    taken = []
    try:
        reported(child)
        for number in range(runs):
            # At no fixed distance from the looks, which come again and again.
            time.sleep(0.5 + number * 0.037 % 0.2)
            began = time.monotonic()
            with open(path, "w", encoding="utf-8") as file:
                file.write(text if number % 2 else f"{text}licence: MIT\n")
            reported(child)
            taken.append((time.monotonic() - began) * 1000)
    finally:
        child.send_signal(signal.SIGINT)
        child.wait()
    return taken


def reported(child):
    """Waits for what is said below a report that is printed whole."""
    for line in child.stderr:
        if "waiting for changes" in line:
            return
    sys.exit("bench watch: it ended")
