// The client against the running service at ATELIER_URL, which has the demo world.

import assert from "node:assert/strict";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";

import { Client, ProblemError, RefusedEventsError, UnreachableError, type Complete, type Event } from "atelier-client";

const url = process.env.ATELIER_URL!;
const client = new Client({ url });
const outfit = ["a-00134", null, "a-00568", "a-00259"];

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

const refusal = (code: string) => (error: unknown) => error instanceof ProblemError && error.code === code;

test("every operation has a method", async () => {
  const document = await (await fetch(`${url}/openapi.json`)).json();
  const operations = Object.values<Record<string, any>>(document.paths).flatMap((item) => Object.values(item));
  const names = operations.filter((of) => !["documents", "agents"].includes(of.tags[0])).map((of) => of.operationId);
  assert.ok(names.length > 30);
  for (const name of names) assert.equal(typeof (client as any)[name], "function", name);
});

test("an outfit is completed and its feedback becomes training data", async () => {
  const body: Complete = { customer: "c-000010", outfit, k: 3, filters: { types: { 1: ["coat"] }, price: { max: 300 } } };
  const completion = await client.completeOutfit(body);
  const [first] = completion.blanks[0]!.suggestions;
  const event = {
    id: `ts-${completion.completion_id.slice(-20)}`, completion_id: completion.completion_id, kind: "bought" as const,
    slot: 1, article: first!.article.id, customer: "c-000010",
  };
  assert.deepEqual(await client.reportFeedback([event]), [{ id: event.id, recorded: true }]);
  const accepted = await collect(client.exportAcceptedOutfits());
  assert.ok(accepted.some((row) => (row.articles as string[]).includes(event.article)));
  assert.ok((await client.getFeedbackCounts()).items.length > 0);
  assert.ok((await client.getAcceptance({ by: "type", days: 2 })).total.bought >= 1);
});

test("many outfits are answered in order", async () => {
  const items = [...Array(5).fill({ outfit, k: 1 }), { customer: "nobody", outfit: [null] }];
  const answers = await collect(client.completeOutfits(items, 4));
  assert.deepEqual(answers.map((answer) => "blanks" in answer), [true, true, true, true, true, false]);
});

test("a batch has no more suggestions than the service takes", async () => {
  const items = Array(48).fill({ outfit: ["a-00134", null, null], k: 250, filters: { in_stock: false } });
  const answers = await collect(client.completeOutfits(items));
  assert.ok(answers.length === 48 && answers.every((answer) => "blanks" in answer));
});

test("methods are compared and outfits scored", async () => {
  const comparison = await client.compareSuggestions({ customer: "c-000010", outfit, methods: ["none", "gsu"] });
  assert.deepEqual(comparison.columns.map((column) => column.method), ["none", "gsu"]);
  const score = await client.scoreOutfit({ outfit: ["a-00134", "a-01243", "a-00568", "a-00259"] });
  assert.equal(score.articles.length, 4);
});

test("lists are read page after page", async () => {
  const articles = await collect(client.listArticles({ n: 400 }));
  assert.ok(new Set(articles.map((article) => article.id)).size >= 1500);
  const coats = await collect(client.listArticles({ type: "coat", where: { colour: "navy" } }));
  assert.ok(coats.length > 0 && coats.every((coat) => coat.type === "coat" && coat.colour === "navy"));
});

test("imports are streamed, and a problem says where", async () => {
  async function* rows() {
    for (let number = 0; number < 20_000; number++) yield { id: `ts-${number}`, features: { age: number % 80 } };
    yield { id: "" };
  }
  await assert.rejects(client.importCustomers(rows()), (error: ProblemError) => error.errors[0]?.line === 20_001);
  const brought = await client.importCustomers([{ id: "ts/1", features: { fit: "slim" } }], { mode: "merge" });
  assert.equal(brought.bad, 0);
  assert.deepEqual((await client.getCustomer("ts/1")).features, { fit: "slim" });
  await client.patchCustomer("ts/1", { fit: null, age: 34 });
  assert.deepEqual((await client.exportCustomer("ts/1")).customer.features, { age: 34 });
  await client.saveOutfit({ customer: "ts/1", articles: ["a-00134", "a-01243", "a-00568", "a-00259"] });
  const draft = await client.saveOutfit({ customer: "ts/1", articles: ["a-00134", null] });
  const [saved] = await collect(client.listCustomerOutfits("ts/1"));
  const ids = (await collect(client.listCustomerOutfits("ts/1", { drafts: true }))).map((outfit) => outfit.id);
  assert.deepEqual(ids.sort(), [saved!.id, draft.id].sort());
  await client.deleteOutfit(saved!.id);
  await client.eraseCustomer("ts/1");
  await assert.rejects(client.getCustomer("ts/1"), refusal("not-found"));
});

test("changes expect versions", async () => {
  await client.putArticle("ts-versioned", { type: "hat" });
  await assert.rejects(client.putArticle("ts-versioned", { type: "hat" }, { ifNoneMatch: "*" }), refusal("precondition-failed"));
  const ifMatch = (await client.request("GET", "/articles/ts-versioned")).headers.get("etag")!;
  await client.patchArticle("ts-versioned", { price: 5 }, { ifMatch });
  await assert.rejects(client.deleteArticle("ts-versioned", { ifMatch }), refusal("precondition-failed"));
  await client.deleteArticle("ts-versioned");
});

test("the service is ready and routed", async () => {
  assert.equal((await client.getReadiness()).status, "ready");
  assert.equal((await client.listMethods()).release, (await client.listReleases()).active);
  const routing = await client.getRouting();
  assert.deepEqual(await client.setRouting(routing), routing);
});

/** A server that gives each request its answer: a status and what follows, or a lost connection. Collects what was asked. */
async function answering(answers: (number | "lost" | "never")[], send: (client: Client) => Promise<unknown>) {
  const seen: { request: IncomingMessage; body: string }[] = [];
  const server = createServer(async (request, answer) => {
    let body = "";
    for await (const piece of request) body += piece;
    seen.push({ request, body });
    const status = answers[seen.length - 1];
    if (status === "never") return;
    if (typeof status !== "number") return void request.socket.destroy();
    answer.writeHead(status, status === 200 ? {} : { "Retry-After": "1" }).end(`{"items": [], "code": "busy"}`);
  }).listen(0);
  const client = new Client({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, key: "atl_x" });
  try {
    await send(client);
  } finally {
    server.close();
    server.closeAllConnections();
  }
  return seen;
}

test("it repeats what can be repeated, and waits as long as the service says", async () => {
  const began = performance.now();
  const seen = await answering(["lost", 503, 200], (client) => client.getFeedbackCounts());
  assert.ok(seen.length === 3 && performance.now() - began > 1000);
  const { url, headers } = seen[2]!.request;
  assert.ok(url === "/v1/feedback/counts" && headers.authorization === "Bearer atl_x");
  assert.notEqual(headers["accept-encoding"], "identity");
});

test("a change is repeated only if the service said that it did nothing", async () => {
  const changes = [
    (client: Client) => client.patchArticle("a", { price: 1 }),
    (client: Client) => client.importArticles([{ id: "a", type: "hat" }]),
    (client: Client) => client.activateRelease("demo"),
  ];
  for (const change of changes) {
    const [first, second, ...more] = await answering([429, 200], change);
    assert.ok(more.length === 0 && first!.body === second!.body);
    await assert.rejects(answering([503, 200], change), refusal("busy"));
    const lost = (error: Error) => error instanceof UnreachableError && error.cause instanceof TypeError;
    await assert.rejects(answering(["lost", 200], change), lost);
  }
});

test("a signal stops a request, and the wait before the next", async () => {
  for (const answers of [["never"], [503]] as const) {
    const stop = new AbortController();
    const began = performance.now();
    setTimeout(() => stop.abort(new Error("enough")), 100);
    const asked = answering([...answers], (client) => client.with({ signal: stop.signal }).getRouting());
    await assert.rejects(asked, /^Error: enough$/);
    assert.ok(performance.now() - began < 900);
  }
  const late = answering(["never"], (client) => client.with({ timeout: 0.1, retries: 0 }).getRouting());
  await assert.rejects(late, (error) => error instanceof UnreachableError && /timeout/.test(error.message));
});

test("a message says each thing once", async () => {
  const message = "422 invalid: /k: k is from 1 to 250, found 9000";
  await assert.rejects(client.completeOutfit({ outfit: [null], k: 9000 }), { name: "ProblemError", message });
});

test("a feed is imported in the background", async () => {
  const sent = await client.sendFeed("ts", new Blob(["id,type,price\nts-feed,hat,29.90\n"]), { mode: "merge", dryRun: true });
  while (["waiting", "running"].includes((await client.getImport(sent.id)).state)) await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal((await client.getImport(sent.id)).state, "done");
  assert.ok((await client.listImports()).imports.some((one) => one.id === sent.id));
  await assert.rejects(client.cancelImport(sent.id), refusal("conflict"));
  await assert.rejects(client.undoImport(sent.id), refusal("conflict"));
});

test("rows that can be read once are sent once", async () => {
  function* rows() {
    yield { id: "a", type: "hat" };
  }
  await assert.rejects(answering([429, 200], (client) => client.importArticles(rows())), refusal("busy"));
});

test("an option that is undefined has its default", async () => {
  const options = { url, timeout: undefined, retries: undefined, maxWait: undefined, fetch: undefined };
  assert.equal((await new Client(options as object).getReadiness()).status, "ready");
});

test("completions are not compressed", async () => {
  const [asked] = await answering([200], (client) => client.completeOutfit({ outfit }));
  assert.equal(asked!.request.headers["accept-encoding"], "identity");
});

test("an id of dots names nothing else", async () => {
  for (const wrong of ["", ".", ".."]) {
    await assert.rejects(async () => client.getArticle(wrong), /no id/);
    await assert.rejects(async () => client.deleteArticle(wrong), /no id/);
  }
});

test("a key goes over http to this machine only", () => {
  const key = "atl_x";
  for (const safe of ["https://shop.example", "http://localhost:8080", "http://127.0.0.2", "http://[::1]:8080"]) new Client({ url: safe, key });
  for (const open of ["http://shop.example", "http://10.0.0.1:8080", "http://localhost.example", "http://127.0.0.1.example"]) {
    assert.throws(() => new Client({ url: open, key }), /https/);
    new Client({ url: open, key, allowHttp: true });
    new Client({ url: open });
  }
});

test("events are sent in parts, and a refused one is an error unless asked otherwise", async () => {
  const answer: typeof fetch = async (_, init) => {
    const sent = JSON.parse(init!.body as string) as Event[];
    assert.ok(sent.length <= 1000);
    const item = (of: Event) => (of.customer === "nobody" ? { status: 422, code: "invalid", detail: "unknown" } : { id: of.id, recorded: true });
    return new Response(JSON.stringify(sent.map(item)));
  };
  // A timeout may be any number of seconds.
  const client = new Client({ url, fetch: answer, timeout: 2.01 });
  const events = (...customers: string[]) => customers.map((customer, at): Event => ({ id: `${at}`, kind: "bought", customer, article: "a" }));
  assert.equal((await client.recordEvents(events(...Array(2500).fill("mara")))).length, 2500);
  const some = events("mara", "nobody");
  await assert.rejects(client.recordEvents(some), (error: unknown) => error instanceof RefusedEventsError && /^1 of 2 .* event 1: unknown$/.test(error.message));
  assert.deepEqual((await client.recordEvents(some, { partial: true })).map((item) => "recorded" in item), [true, false]);
});
