// The requests of docs/api.md with the TypeScript client, in the order of the page. clients/check runs them.

import { createHash } from "node:crypto";
import { Client, ProblemError } from "atelier-client";

const url = process.env.ATELIER_URL ?? "http://127.0.0.1:8080";
const run = `ts-${Date.now()}`; // so that ids are new each time
const client = new Client({ url }); // with a key: { url: "https://…", key: "atl_…" }

// %% API keys
try {
  await new Client({ url, key: "atl_not-a-key" }).listMethods();
} catch (problem) {
  if (problem instanceof ProblemError) console.log(problem.message);
}

// %% Health
await client.getLiveness();
console.log(await client.getReadiness());

// %% Health
console.log((await client.getMetrics()).split("atelier_model_info{").length - 1, "models");

// %% Health
await client.listReleases();
console.log(await client.listMethods());

// %% The catalogue
await client.putArticle("new-coat", { type: "coat", colour: "red", price: 189.0, in_stock: true });
console.log(await client.importArticles([
  { id: "new-hat", type: "hat", price: 29.9 },
  { id: "new-scarf", type: "scarf", price: 35 },
]));

// %% The catalogue
await client.patchArticle("new-coat", { price: 149, colour: null, brand: "Linden" });
await client.importArticles([{ id: "new-scarf", in_stock: false }], { mode: "merge" });
console.log(await client.getArticle("new-scarf"));

// %% The catalogue
try {
  await client.putArticle("new-coat", { type: "coat" }, { ifNoneMatch: "*" });
} catch (problem) {
  const { headers } = await client.request("GET", "/articles/new-coat");
  if (problem instanceof ProblemError) console.log(problem.code, headers.get("etag"));
}

// %% The catalogue
for await (const article of client.listArticles({ search: "linden wool" })) break; // reads as far as you go
for await (const coat of client.listArticles({ type: "coat", where: { colour: "navy", in_stock: "true" } })) coat.price;
await client.deleteArticle("new-hat");
console.log(await client.getArticle("new-coat"));

// %% The catalogue
console.log(await client.getCoverage());

// %% Feeds
const begun = await client.sendFeed("shop", "id,type,price\nfeed-hat,hat,29.90\n", { mode: "merge" });
console.log((await client.getImport(begun.id)).state, (await client.listImports()).imports.length);

// %% Feeds
await client.putFeed("nightly", { url: "https://shop.invalid/feed.xml", schedule: { at: ["04:30"] } });
await client.patchFeed("nightly", { schedule: { at: ["05:15"] } });
await client.fetchFeed("nightly");
console.log((await client.getFeed("nightly")).state?.due_at, (await client.listFeeds()).feeds.length);
await client.deleteFeed("nightly");

// %% Customers
const mara = { gender: "female", age: 34, preferred_colours: ["black", "red"], nogo_materials: ["leather"] };
console.log(await client.putCustomer("mara", mara));

// %% Customers
console.log(await client.patchCustomer("mara", { age: 35, fit: "regular" }));

// %% Customers
await client.importCustomers([{ id: "noor", features: { gender: "male", fit: "slim" } }]);
for await (const customer of client.listCustomers()) break;
console.log(await client.getCustomer("noor"));

// %% Completing an outfit
const completion = await client.completeOutfit({
  customer: "mara", outfit: ["a-00134", null, "a-00568", "a-00259", "a-00315"], k: 3,
  filters: { types: { 1: ["coat", "blazer"] }, price: { max: 200 }, exclude: ["a-01243"] },
});
console.log(completion);

// %% What fits
console.log(await client.completeOutfit({
  features: { gender: "female", top_size: "M" }, outfit: ["a-00134", null, "a-00568", "a-00259"], k: 2,
  filters: { types: { 1: ["coat", "blazer"] }, fit: false, in_stock: false },
}));

// %% Visitors, reasons and sets
console.log(await client.completeOutfit({
  features: { gender: "female", occasion: "office" }, outfit: ["a-00134", "a-00568", null, "a-00259"],
  method: "gsu", k: 2, lift: true, explain: true, diversity: 0.3,
}));

// %% Visitors, reasons and sets
console.log(await client.completeOutfit({ customer: "mara", outfit: ["a-00134", null, "a-00568", null], k: 2, sets: 1 }));

// %% Visitors, reasons and sets
const items = [{ customer: "mara", outfit: ["a-00134", "a-00568", "a-00259", null], k: 1 }, { customer: "nobody", outfit: [null] }];
const answers = [];
for await (const answer of client.completeOutfits(items)) answers.push(answer); // any number: up to 64 at a time
console.log({ items: answers });

// %% Rules
await client.putRule("own-brand", {
  effect: "boost", factor: 2, articles: { attributes: { brand: ["Linden"] } },
  when: { features: { gender: ["female"] } }, state: "active",
});
await client.patchRule("own-brand", { state: "off" });
await client.getRule("own-brand");
await client.setHoldout({ share: 0 });
await client.getHoldout();
await client.getRuleEffect("own-brand");
console.log(await client.listRules());
await client.deleteRule("own-brand");

// %% Product pages
console.log(await client.findSimilarArticles("a-00134", { customer: "mara", n: 2 }));
console.log(await client.completeLook("a-00134", { customer: "mara", n: 2, total_max: 400 }));

// %% Looks
await client.putLook("autumn-office", {
  title: "Autumn office", articles: ["a-00134", "a-01243", "a-00568", "a-00259"],
  when: { features: { gender: ["female"] } }, state: "published",
});
await client.patchLook("autumn-office", { state: "draft" });
await client.getLook("autumn-office");
const looks = [];
for await (const look of client.listLooks()) looks.push(look);
console.log({ items: looks });
await client.deleteLook("autumn-office");

// %% Comparing and scoring
console.log(await client.compareSuggestions({
  customer: "mara", outfit: ["a-00134", null, "a-00568", "a-00259"], methods: ["none", "gsu"], k: 3, true_article: "a-01243",
}));

// %% Comparing and scoring
console.log(await client.scoreOutfit({ customer: "mara", outfit: ["a-00134", "a-01243", "a-00568", "a-00259"] }));

// %% Feedback
const article = completion.blanks[0].suggestions[0].article.id;
const event = { completion_id: completion.completion_id, slot: 1, customer: "mara", article };
console.log(await client.reportFeedback([{ ...event, id: `view-${run}`, kind: "shown" }, { ...event, id: `click-${run}`, kind: "accepted" }]));

// %% Feedback
console.log(await client.getFeedbackCounts());

// %% Feedback
console.log(await client.getAcceptance({ by: "method", days: 30 }));

// %% Feedback
for await (const outfit of client.exportAcceptedOutfits()) console.log(outfit);

// %% Events
console.log(await client.recordEvents([
  { id: `order-${run}/1`, kind: "bought", customer: "mara", article: "a-00568", order: run, value: 64.5 },
]));

// %% Events
await client.importEvents([{ id: `view-${run}`, kind: "viewed", article: "a-00568" }]);
console.log(await client.getEventCounts({ days: 30 }));

// %% Saved outfits
const kept = await client.saveOutfit({
  articles: ["a-00134", "a-01243", "a-00568", "a-00259"], features: { occasion: "office" },
});
await client.patchOutfit(kept.id, { customer: "mara" });
console.log(await client.getOutfit(kept.id));

// %% Saved outfits
await client.importOutfits([{ customer: "mara", articles: ["a-00134", "a-00587", "a-00568", "a-00259"] }]);
await client.deleteOutfit(kept.id);
const outfits = [];
for await (const outfit of client.listCustomerOutfits("mara")) outfits.push(outfit); // page after page
console.log({ items: outfits, next_cursor: null });

// %% Routing and releases
await client.setRouting({ default_method: "match" });
const arms = [{ name: "today", method: "match", share: 1 }, { name: "new", method: "gsu", share: 1 }];
await client.putExperiment(`autumn-${run}`, { arms });
await client.patchExperiment(`autumn-${run}`, { state: "running", share: 20 });
await client.patchExperiment(`autumn-${run}`, { state: "shipped", winner: "new" });
console.log(await client.getRouting());

// %% Routing and releases
const archive = "the bytes of demo.tar.gz";
try {
  await client.sendRelease(archive, createHash("sha256").update(archive).digest("hex"));
} catch (problem) {
  if (problem instanceof ProblemError) console.log(problem.code);
}

// %% Routing and releases
console.log(await client.activateRelease("demo"));

// %% Problems
try {
  await client.completeOutfit({ outfit: [null], k: 9000 });
} catch (problem) {
  if (problem instanceof ProblemError) console.log(problem.status, problem.code, problem.errors[0].pointer, problem.requestId);
}

// %% Problems
console.log(await (await client.request("GET", "/openapi.json")).json());

// %% Exporting and erasing a customer
console.log(await client.exportCustomer("mara"));

// %% Exporting and erasing a customer
await client.eraseCustomer("mara");
try {
  await client.getCustomer("mara");
} catch (problem) {
  if (problem instanceof ProblemError) console.log(problem.code);
}
