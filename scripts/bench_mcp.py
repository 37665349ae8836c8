"""Measures the MCP bridge: `scripts/bench mcp`. Needs no engine.

The same MCP server, in Python, is called three ways by one client: over its standard streams with nothing between, through
`selu mcp-bridge`, and through a bridge in Python with grpcio, as the format's documents show one (installed from PyPI below
target/; left out where that fails). The kinds go by turns; medians are shown, and what each bridge keeps in memory beside
the server.
"""
import json
import os
import signal
import statistics
import subprocess
import sys
import time

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SERVER = [sys.executable, "-u", os.path.join(REPOSITORY, "tests/bridge/server.py"), "plain"]
ARGUMENTS = json.dumps({"city": "Berlin", "days": 3, "note": "x" * 200})
GRPCIO = ["grpcio==1.85.3", "protobuf==7.36.2"]
TARGET_US, TARGET_KIB = 300, 12 * 1024


def run(options, program, client):
    bridges = {"bridge": Bridge([program, "mcp-bridge", "--listen", "127.0.0.1:0", "--", *SERVER], {})}
    library = grpcio()
    if library:
        wrapper = os.path.join(REPOSITORY, "scripts/bench_mcp_wrapper.py")
        bridges["python"] = Bridge([sys.executable, wrapper, *SERVER], {"PYTHONPATH": library})
    times = {"alone": [], **{name: [] for name in bridges}}
    try:
        for _ in range(options.runs):
            times["alone"].append(measured(client, "stdio", str(options.calls), ARGUMENTS, *SERVER))
            for name, bridge in bridges.items():
                times[name].append(measured(client, "bare", bridge.address, "look", ARGUMENTS, str(options.calls)))
        row = {f"{name}_us": statistics.median(found) for name, found in times.items()}
        for name, bridge in bridges.items():
            row[f"{name}_added_us"] = row[f"{name}_us"] - row["alone_us"]
            row[f"{name}_kib"] = bridge.resident()
    finally:
        for bridge in bridges.values():
            bridge.end()
    if options.json:
        print(json.dumps(row, indent=2))
    else:
        for key, value in row.items():
            print(f"{key:>20}  {value:,.0f}")
    missed = [
        text
        for text, met in [
            (f"less than {TARGET_US} us added to a call", row["bridge_added_us"] < TARGET_US),
            (f"less than {TARGET_KIB} KiB resident", row["bridge_kib"] < TARGET_KIB),
        ]
        if not met
    ]
    for text in missed:
        print(f"missed: {text}", file=sys.stderr)
    return 1 if missed else 0


def measured(client, *arguments):
    done = subprocess.run([client, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    return statistics.median(json.loads(done.stdout)["us"])


def grpcio():
    folder = os.path.join(REPOSITORY, "target/bench-grpcio")
    if not os.path.isdir(folder):
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary=:all:", "--target", folder, *GRPCIO]
        if subprocess.run(pip, stderr=subprocess.DEVNULL).returncode != 0:
            print("bench mcp: PyPI gives no grpcio; the bridge in Python is left out", file=sys.stderr)
            return None
    return folder


class Bridge:
    """A bridge that says `serving on ADDRESS,` once it does."""

    def __init__(self, command, environment):
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
        )
        for line in self.process.stderr:
            if "serving on " in line:
                self.address = line.split("serving on ")[1].split(",")[0].strip()
                return
        sys.exit(f"bench mcp: {command[0]} does not serve")

    def resident(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
