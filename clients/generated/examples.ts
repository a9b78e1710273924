// The examples of docs/api.md with the client that openapi-generator makes for TypeScript (typescript-fetch), against the
// service at ATELIER_URL. It prints the answer that each example shows, and ../guide.py compares them.

import assert from "node:assert/strict";
import * as api from "./openapi-client/index.js";

const basePath = process.env.ATELIER_URL + "/v1";
const configuration = new api.Configuration({ basePath });
const articles = new api.ArticlesApi(configuration);
const completion = new api.CompletionApi(configuration);
const customers = new api.CustomersApi(configuration);
const documents = new api.DocumentsApi(configuration);
const feedback = new api.FeedbackApi(configuration);
const looks = new api.LooksApi(configuration);
const outfits = new api.OutfitsApi(configuration);
const releases = new api.ReleasesApi(configuration);
const rules = new api.RulesApi(configuration);
const experiments = new api.ExperimentsApi(configuration);
const service = new api.ServiceApi(configuration);

/** Prints an answer with the names of JSON; the client has `completionId` for `completion_id`, and `_new` for `new`. */
function show(answer: unknown) {
  const named = (_: string, value: unknown) =>
    value !== null && typeof value === "object" && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).map(([name, field]) => [name.replace(/^_/, "").replace(/[A-Z]/g, (one) => "_" + one.toLowerCase()), field]))
      : value;
  console.log(JSON.stringify(answer, named));
}

async function refused(call: Promise<unknown>): Promise<Response> {
  const error = await call.then(() => assert.fail("it was not refused"), (error: unknown) => error);
  assert(error instanceof api.ResponseError);
  return error.response;
}

const problem = async (call: Promise<unknown>) => (await refused(call)).json();
const lines = (...rows: object[]) => rows.map((row) => JSON.stringify(row) + "\n").join("");

await refused(new api.ReleasesApi(new api.Configuration({ basePath, accessToken: "atl_not-a-key" })).listMethods());
show(await problem(new api.ReleasesApi(new api.Configuration({ basePath, apiKey: "atl_not-a-key" })).listMethods()));
assert.equal((await service.getLiveness()).status, "alive");
show(await service.getReadiness());
assert.match(await service.getMetrics(), /atelier_model_info{/);
assert.equal((await releases.listReleases()).active, "demo");
show(await releases.listMethods());

await articles.putArticle({ id: "new-coat", requestBody: { type: "coat", colour: "red", price: 189.0, in_stock: true } });
const hats = lines({ id: "new-hat", type: "hat", price: 29.9 }, { id: "new-scarf", type: "scarf", price: 35 });
show(await articles.importArticles({ body: hats }));
await articles.patchArticle({ id: "new-coat", requestBody: { price: 149, colour: null, brand: "Linden" } });
await articles.importArticles({ body: lines({ id: "new-scarf", in_stock: false }), mode: "merge" });
show(await articles.getArticle({ id: "new-scarf" }));
show(await problem(articles.putArticle({ id: "new-coat", ifNoneMatch: "*", requestBody: { type: "coat" } })));
const version = (await articles.getArticleRaw({ id: "new-coat" })).raw.headers.get("etag")!;
assert.equal((await refused(articles.getArticle({ id: "new-coat", ifNoneMatch: version }))).status, 304);
assert((await articles.listArticles({ search: "linden wool", n: 2 })).nextCursor);
const coats = await articles.listArticles({ type: "coat", where: ["colour:navy", "in_stock:true"] });
assert.equal(coats.items[0].colour, "navy");
await articles.deleteArticle({ id: "new-hat" });
show(await articles.getArticle({ id: "new-coat" }));
show(await articles.getCoverage());
const odd = "ü/50 % wool?#+&..";
await articles.putArticle({ id: odd, requestBody: { type: "hat", variants: [{ id: "S/1", stock: { zurich: 1 }, fabric: "felt" }] } });
assert.equal((await articles.getArticle({ id: odd })).id, odd);
await articles.deleteArticle({ id: odd, ifMatch: "*" });

const imports = new api.ImportsApi(configuration);
const sent = await imports.sendFeed({ name: "shop", body: new Blob(["id,type,price\nfed,hat,29.90\n"]), mode: "merge" });
let ended = sent;
while (["waiting", "running"].includes(ended.state)) ended = await imports.getImport({ id: sent.id });
assert.deepEqual([ended.state, ended.result?.added], ["done", 1]);
show(ended);
assert.equal((await imports.listImports()).imports[0].id, sent.id);
assert.equal((await problem(imports.cancelImport({ id: sent.id }))).code, "conflict");
assert.equal((await imports.undoImport({ id: sent.id })).state, "undone");
const nightly = { url: "https://shop.invalid/feed.xml", schedule: { at: ["04:30"] } };
const feeds = new api.FeedsApi(configuration);
assert.equal((await feeds.putFeed({ name: "nightly", feed: nightly })).schedule?.at?.[0], "04:30");
await feeds.patchFeed({ name: "nightly", requestBody: { schedule: { at: ["05:15"] } } });
await feeds.fetchFeed({ name: "nightly" });
assert.equal((await feeds.listFeeds()).feeds[0].name, (await feeds.getFeed({ name: "nightly" })).name);
await feeds.deleteFeed({ name: "nightly" });

const mara = { gender: "female", age: 34, preferred_colours: ["black", "red"], nogo_materials: ["leather"] };
show(await customers.putCustomer({ id: "mara", customerPut: { features: mara } }));
show(await customers.patchCustomer({ id: "mara", customerPatch: { features: { age: 35, fit: "regular" } } }));
await customers.importCustomers({ body: lines({ id: "noor", features: { gender: "male", fit: "slim" } }) });
assert.equal((await customers.listCustomers({ n: 1 })).items.length, 1);
show(await customers.getCustomer({ id: "noor" }));

const completed = await completion.completeOutfit({
  complete: {
    customer: "mara", outfit: ["a-00134", null, "a-00568", "a-00259", "a-00315"], k: 3,
    filters: { types: { 1: ["coat", "blazer"] }, price: { max: 200 }, exclude: ["a-01243"] },
  },
});
show(completed);
const bodies: api.Complete[] = [
  {
    features: { gender: "female", top_size: "M" }, outfit: ["a-00134", null, "a-00568", "a-00259"], k: 2,
    filters: { types: { 1: ["coat", "blazer"] }, fit: false, inStock: false },
  },
  {
    features: { gender: "female", occasion: "office" }, outfit: ["a-00134", "a-00568", null, "a-00259"],
    method: "gsu", k: 2, lift: true, explain: true, diversity: 0.3,
  },
  { customer: "mara", outfit: ["a-00134", null, "a-00568", null], k: 2, sets: 1 },
];
for (const complete of bodies) show(await completion.completeOutfit({ complete }));
const items = [{ customer: "mara", outfit: ["a-00134", "a-00568", "a-00259", null], k: 1 }, { customer: "nobody", outfit: [null] }];
show(await completion.completeOutfits({ batchBody: { items } }));
const rule: api.Rule = {
  effect: "boost", factor: 2, articles: { attributes: { brand: ["Linden"] } },
  when: { features: { gender: ["female"] } }, state: "active",
};
const trial = await rules.putRule({ name: "own-brand", dryRun: true, rule });
assert((await rules.putRule({ name: "own-brand", rule })).articleCount === trial.articleCount);
await rules.patchRule({ name: "own-brand", requestBody: { state: "off" } });
assert.equal((await rules.getRule({ name: "own-brand" })).state, "off");
show(await rules.listRules());
await rules.deleteRule({ name: "own-brand" });
assert.equal((await articles.findSimilarArticles({ id: "a-00134", customer: "mara", n: 2 })).items.length, 2);
show(await looks.completeLook({ id: "a-00134", customer: "mara", n: 2, totalMax: 400 }));
const look: api.Look = {
  title: "Autumn office", articles: ["a-00134", "a-01243", "a-00568", "a-00259"],
  when: { features: { gender: ["female"] } }, state: "published",
};
assert.deepEqual((await looks.putLook({ name: "autumn-office", look })).warnings, []);
await looks.patchLook({ name: "autumn-office", requestBody: { state: "draft" } });
assert.equal((await looks.getLook({ name: "autumn-office" })).state, "draft");
show(await looks.listLooks({}));
await looks.deleteLook({ name: "autumn-office" });
const compare = {
  customer: "mara", outfit: ["a-00134", null, "a-00568", "a-00259"], methods: ["none", "gsu"], k: 3, trueArticle: "a-01243",
};
show(await completion.compareSuggestions({ compare }));
show(await completion.scoreOutfit({ score: { customer: "mara", outfit: ["a-00134", "a-01243", "a-00568", "a-00259"] } }));

const article = completed.blanks[0].suggestions[0].article.id;
const event = { completionId: completed.completionId, slot: 1, customer: "mara", article };
const view: api.FeedbackEvent = { ...event, id: "view-1", kind: "shown" };
const click: api.FeedbackEvent = { ...event, id: "click-1", kind: "accepted" };
const foreign = { ...view, id: "view-2", completionId: "foreign" };
const taken = await feedback.reportFeedback({ feedbackEvent: [view, click, foreign] });
assert.equal(taken.pop()!.code, "not-found");
show(taken);
show(await feedback.getFeedbackCounts());
show(await feedback.getAcceptance({ by: "method", days: 30 }));
console.log((await (await feedback.exportAcceptedOutfits()).text()).trim());

const happened = new api.EventsApi(configuration);
const sold: api.Event = { id: "order-1/1", kind: "bought", customer: "mara", article: "a-00568", order: "1", value: 64.5 };
show(await happened.recordEvents({ event: [sold] }));
await happened.importEvents({ body: lines({ id: "view-3", kind: "viewed", article: "a-00568" }) });
show(await happened.getEventCounts({ days: 30 }));

const articlesKept = ["a-00134", "a-01243", "a-00568", "a-00259"];
const kept = await outfits.saveOutfit({ outfitSave: { articles: articlesKept, features: { occasion: "office" } } });
await outfits.patchOutfit({ id: kept.id, outfitPatch: { customer: "mara" } });
show(await outfits.getOutfit({ id: kept.id }));
await outfits.importOutfits({ body: lines({ customer: "mara", articles: ["a-00134", "a-00587", "a-00568", "a-00259"] }) });
await outfits.deleteOutfit({ id: kept.id });
show(await customers.listCustomerOutfits({ id: "mara" }));

await releases.setRouting({ routing: { defaultMethod: "match" } });
const arms = [{ name: "today", method: "match", share: 1 }, { name: "new", method: "gsu", share: 1 }];
await experiments.putExperiment({ name: "autumn", experiment: { arms } });
await experiments.patchExperiment({ name: "autumn", requestBody: { state: "running", share: 20 } });
assert.equal((await experiments.getExperimentFigures({ name: "autumn" })).decision.state, "collecting");
assert.match(await (await experiments.getExperimentCustomers({ name: "autumn" })).text(), /^customer,arm,/);
await experiments.patchExperiment({ name: "autumn", requestBody: { state: "shipped", winner: "new" } });
assert.equal((await experiments.getExperiment({ name: "autumn" })).winner, "new");
await experiments.putExperiment({ name: "winter", experiment: { arms } });
await experiments.deleteExperiment({ name: "winter" });
assert.equal((await experiments.listExperiments()).experiments.length, 1);
show(await releases.getRouting());
show(await releases.activateRelease({ name: "demo" }));
show(await problem(completion.completeOutfit({ complete: { outfit: [null], k: 9000 } })));
for (const text of [documents.getDocsPage(), documents.getProblemsPage(), documents.getDocument({ name: "api.md" }), documents.listDocuments()]) {
  assert.match(await text, /Atelier|Problem/);
}
show(await documents.getOpenApiDocument());
show(await customers.exportCustomer({ id: "mara" }));
await customers.eraseCustomer({ id: "mara" });
show(await problem(customers.getCustomer({ id: "mara" })));
