"""A queueing simulation of the service: from measured costs to latency, overload and the size of a fleet.

    python3 benches/capacity.py             (checks it against measured figures, then prints docs/performance.md's tables)

One machine has some cores, which running tasks share evenly. A request is a task before its question waits; then a model's
thread takes all that wait, up to a batch, as soon as it is free; a second thread starts a run only with 16 questions; the last
layer's part is shared with cores that are idle when it starts; and the answer is a task again. A caller that runs on the
same machine is one more task. Admission and deadlines are those of `atelier_engine::inference::queue`. Times are in milliseconds.
Standard library only; the same seed gives the same figures.
"""

import heapq
import itertools
import math
import random
from dataclasses import dataclass, field
from statistics import median

# Measured (docs/performance.md), gsu at 30,000 articles, per question: the trunk in runs of 1, 16 and 64; the last layer for
# one question, and for many; a request over HTTP without the model.
TRUNK = [(1, 0.597), (16, 0.153), (64, 0.123)]
LAST_LAYER = [(1, 0.615), (12, 0.110), (64, 0.105)]
HTTP = 0.160
# A refusal: what is left of a request without catalogue, model and a long answer. Assumed, not measured.
REFUSAL = 0.060


@dataclass
class Machine:
    cores: float
    # How much slower than the machine of the costs above.
    slower: float = 1.0
    http: float = HTTP
    # Processor time of a caller for a request, if callers run on this machine.
    caller: float = 0.0
    threads: int = 0
    batch: int = 64
    queue: int = 1024
    least_parallel: int = 16
    deadline: float = 5000.0
    # How many times the cost of a question: a large request, or many articles.
    model: float = 1.0
    last_layer: float = 1.0

    def trunk(self, questions):
        return self.slower * self.model * questions * cost(TRUNK, questions)

    def layer(self, questions):
        return self.slower * self.model * self.last_layer * questions * cost(LAST_LAYER, questions)


def cost(points, questions):
    """Between the measured points, the cost of a whole run grows evenly."""
    if questions >= points[-1][0]:
        return points[-1][1]
    for (low, at_low), (high, at_high) in itertools.pairwise(points):
        if questions <= high:
            share = (questions - low) / (high - low)
            return ((1 - share) * low * at_low + share * high * at_high) / questions


@dataclass
class Found:
    took: list = field(default_factory=list)
    refused: int = 0
    late: int = 0
    used: float = 0.0
    lasted: float = 0.0
    batches: list = field(default_factory=list)

    per_second = property(lambda self: 1000 * len(self.took) / self.lasted)
    per_cpu_second = property(lambda self: 1000 * len(self.took) / self.used)

    def percentile(self, percent):
        return sorted(self.took)[min(len(self.took) - 1, len(self.took) * percent // 100)]


class Simulation:
    """`callers` send their next request after an answer; or requests arrive by chance, `rate` a second."""

    def __init__(self, machine, requests, callers=0, rate=0.0, seed=1):
        self.machine, self.requests, self.callers, self.rate = machine, requests, callers, rate
        self.random = random.Random(seed)
        self.now, self.virtual, self.order = 0.0, 0.0, itertools.count()
        self.tasks, self.timed = [], []
        self.waiting, self.running, self.sent = [], 0, 0
        self.pace = [0.0, 0.0, 0.0]
        self.threads = machine.threads or max(1, math.floor(machine.cores))
        self.found = Found()

    def run(self):
        for _ in range(self.callers):
            self.send()
        if self.rate:
            self.arrive()
        while (self.tasks or self.timed) and self.sent < self.requests + 1:
            speed = min(1.0, self.machine.cores / max(1, len(self.tasks)))
            task = self.now + (self.tasks[0][0] - self.virtual) / speed if self.tasks else math.inf
            timed = self.timed[0][0] if self.timed else math.inf
            at = min(task, timed)
            self.virtual += (at - self.now) * speed
            self.now = at
            _, _, done = heapq.heappop(self.tasks if task <= timed else self.timed)
            done()
        self.found.lasted = self.now
        return self.found

    def task(self, work, done, service=True):
        if service:
            self.found.used += work
        heapq.heappush(self.tasks, (self.virtual + work, next(self.order), done))

    def arrive(self):
        self.send()
        heapq.heappush(self.timed, (self.now + self.random.expovariate(self.rate / 1000), next(self.order), self.arrive))

    def send(self):
        self.sent += 1
        begun = self.now
        # Half of a request's work comes before the model.
        work = self.machine.slower * self.machine.http / 2
        self.task(self.machine.caller / 2, lambda: self.task(work, lambda: self.ask(begun)), service=False)

    def ask(self, begun):
        seconds, questions, runs = self.pace
        ahead = len(self.waiting)
        per_question, per_run = seconds / max(questions, 1e-9), seconds / max(runs, 1e-9)
        takes = min(ahead * per_question, math.ceil(ahead / self.machine.batch) * per_run) / self.threads
        left = self.machine.deadline - (self.now - begun)
        if ahead and (ahead + 1 > self.machine.queue or takes > left / 3):
            self.found.refused += 1
            self.task(self.machine.slower * REFUSAL, self.leave)
            return
        self.waiting.append(begun)
        self.start()

    def start(self):
        least = 1 if self.running == 0 else self.machine.least_parallel
        if self.running >= self.threads or len(self.waiting) < least:
            return
        taken, self.waiting = self.waiting[: self.machine.batch], self.waiting[self.machine.batch:]
        wanted = [begun for begun in taken if self.now - begun < self.machine.deadline]
        self.found.late += len(taken) - len(wanted)
        if not wanted:
            return self.start()
        self.running += 1
        self.found.batches.append(len(wanted))
        began = self.now
        self.task(self.machine.trunk(len(wanted)), lambda: self.layer(wanted, began))
        self.start()

    def layer(self, wanted, began):
        idle = max(0, math.floor(self.machine.cores - len(self.tasks)) - 1)
        parts = [None] * (1 + idle)

        def done():
            parts.pop()
            if not parts:
                self.finish(wanted, began)

        for _ in range(len(parts)):
            self.task(self.machine.layer(len(wanted)) / (1 + idle), done)

    def finish(self, wanted, began):
        self.running -= 1
        for place, value in enumerate((self.now - began, len(wanted), 1)):
            self.pace[place] = 0.8 * self.pace[place] + value
        work = self.machine.slower * self.machine.http / 2
        for begun in wanted:
            self.task(work, lambda begun=begun: self.answer(begun))
        self.start()

    def answer(self, begun):
        self.found.took.append(self.now - begun)
        self.leave()

    def leave(self):
        # What remains of a caller's work: it reads the answer.
        if self.callers:
            self.task(self.machine.caller / 2, self.send, service=False)


def check():
    """Returns how many times too fast the simulation is, by the number of articles."""
    print("# The check: measured, simulated, how far off\n")
    print("| what | measured | simulated | off by |\n|---|---|---|---|")

    def line(what, measured, simulated):
        print(f"| {what} | {measured:,.2f} | {simulated:,.2f} | {100 * (simulated / measured - 1):+.0f} % |")

    # Two quiet cores (issue 23). A caller costs what was left of the cores: 2 / 4,098 s - 1 / 2,569 s.
    quiet = dict(cores=2, caller=1000 * (2 / 4098 - 1 / 2569))
    one, many = (Simulation(Machine(**quiet), 20_000, callers=callers).run() for callers in (1, 64))
    line("two quiet cores: 1 caller, median ms", 1.34, median(one.took))
    line("two quiet cores: 64 callers, completions a CPU-second", 2569, many.per_cpu_second)
    line("two quiet cores: 64 callers, completions a second", 4098, many.per_second)
    # A table of `just speed` with the layer in floats. How much slower its cores are is taken from 64 callers, and how
    # many cores other programs left from 256; the rest is predicted.
    table = {1: (472, 518, 1.92), 8: (1019, 1692, 4.23), 64: (2113, 4710, 13.07), 256: (2083, 4581, 51.14)}
    slower = many.per_cpu_second / table[64][0]
    cores = 4581 * (1 / 2083 + slower * quiet["caller"] / 1000)
    for callers, (per_cpu, per_second, took) in table.items():
        machine = Machine(cores=cores, slower=slower, caller=slower * quiet["caller"], threads=4)
        found = Simulation(machine, 20_000, callers=callers).run()
        line(f"the table: {callers} callers, completions a CPU-second", per_cpu, found.per_cpu_second)
        line(f"the table: {callers} callers, completions a second", per_second, found.per_second)
        line(f"the table: {callers} callers, median ms", took, median(found.took))
    print(f"\nThe table's cores were {slower:.2f} times slower, and {cores:.1f} of 4 were free.\n")
    # The table of catalogues' sizes. How much slower its cores were is taken from 30,000 articles.
    sizes = {30_000: 2695, 100_000: 1379, 300_000: 662, 1_000_000: 237}
    slower = many.per_cpu_second / sizes[30_000]
    optimism = {}
    for articles, per_cpu in sizes.items():
        machine = Machine(cores=2, slower=slower, caller=slower * quiet["caller"], last_layer=articles / 30_000)
        found = Simulation(machine, 5_000, callers=64).run()
        line(f"{articles:,} articles: 64 callers, completions a CPU-second", per_cpu, found.per_cpu_second)
        optimism[articles] = max(1.0, found.per_cpu_second / per_cpu)
    print(f"\nThat table's cores were {slower:.2f} times slower.\n")
    # Overload (docs/reliability.md): one thread, a queue of 512, ten times the peak, on two cores. A question costs as much as
    # the measured peak says; how much of the peak is answered is predicted.
    single, model = dict(cores=2, threads=1, queue=512), 10.0
    for _ in range(4):
        peak = Simulation(Machine(**single, model=model, last_layer=0.1), 3_000, callers=64).run()
        model *= peak.per_second / 269.6
    found = Simulation(Machine(**single, model=model, last_layer=0.1), 60_000, rate=2697).run()
    line("overload: answered at ten times the peak, % of it", 99.4, 100 * found.per_second / peak.per_second)
    print(f"\nOverload: {found.late} answers came too late (measured: none).")
    return optimism


def fleet(optimism):
    print("\n# One replica of four cores\n")
    print("| completions a second | cores busy | batch | median ms | p99 ms | refused |\n|---|---|---|---|---|---|")
    for rate in (100, 500, 1000, 2000, 4000, 6000, 8000, 9000, 12000):
        found = Simulation(Machine(cores=4, threads=4), 40_000, rate=rate).run()
        busy = found.used / found.lasted
        mean = sum(found.batches) / len(found.batches)
        print(f"| {rate:,} | {busy:.1f} | {mean:.1f} | {median(found.took):.1f} | {found.percentile(99):.1f} |"
              f" {100 * found.refused / (found.refused + len(found.took)):.1f} % |")
    print("\n# Replicas of four cores, 70 % busy, and one more in case one fails\n")
    print("| articles | completions a second of a replica | median ms | p99 ms | 1,000/s | 10,000/s | 100,000/s |"
          " core-hours a million |\n|---|---|---|---|---|---|---|---|")
    for articles in optimism:
        # The last layer grows with the articles.
        machine = Machine(cores=4, threads=4, last_layer=articles / 30_000)
        full = machine.http + (machine.trunk(64) + machine.layer(64)) / 64
        rate = 0.7 * 1000 * machine.cores / full
        found = Simulation(machine, 15_000, rate=rate).run()
        rate /= optimism[articles]
        replicas = " | ".join(f"{math.ceil(wanted / rate) + 1:,}" for wanted in (1_000, 10_000, 100_000))
        hours = optimism[articles] * found.used / len(found.took) / 3.6
        print(f"| {articles:,} | {rate:,.0f} | {median(found.took):.0f} | {found.percentile(99):.0f} | {replicas} | {hours:.2f} |")


if __name__ == "__main__":
    fleet(check())
