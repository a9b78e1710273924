/**
 * Client of Atelier's JSON API, for browsers and Node. The methods are named after the operations of `/openapi.json`;
 * `schema.ts` is generated from that document.
 */

import type * as t from "./schema.js";

export type * from "./schema.js";

/** The service's limit, `batch_suggestions` of x-limits. */
const BATCH_SUGGESTIONS = 20_000;
/** The service's limit of events in one request. */
const EVENTS = 1_000;

export interface Options {
  /** Where the service is; by default `http://127.0.0.1:8080`. */
  url?: string;
  /** An API key. Keep it on a server: what a page holds, its visitors can read. */
  key?: string;
  /** Whether the key may go over http to other hosts than this machine, where everyone on the way can read it. */
  allowHttp?: boolean;
  /**
   * How often a request is sent again; 3 by default. After 429 all are but imports of rows that cannot be read twice, after
   * a lost connection, 502, 503 and 504 those that do the same when they are sent twice.
   */
  retries?: number;
  /** The longest wait before a repetition, in seconds; 60 by default. If the service asks for more, the problem is thrown. */
  maxWait?: number;
  /** How long an answer may take, in seconds; 30 by default. Imports and exports take as long as they take. */
  timeout?: number;
  /** Stops what is under way, and later requests; its reason is thrown. */
  signal?: AbortSignal;
  fetch?: typeof fetch;
}

export interface Request {
  query?: Record<string, string | number | boolean | string[] | undefined> | undefined;
  headers?: Record<string, string | undefined>;
  /** Sent as JSON. */
  json?: unknown;
  /** A function makes it again for each attempt; a stream can be sent once. */
  body?: BodyInit | (() => BodyInit);
  /** Whether sending it twice does what sending it once does. By default, whether the method says so. */
  repeat?: boolean;
  /** No timeout. */
  patient?: boolean;
}

/** Versions that a change expects. */
export interface Conditions {
  ifMatch?: string;
  ifNoneMatch?: string;
}

export type Row = Record<string, unknown>;
export type Rows = Iterable<Row> | AsyncIterable<Row>;

/** What a rule that is changed must be, and whether it is only checked. */
export interface RuleOptions extends Conditions {
  dryRun?: boolean;
  /** With `dryRun`: tries the rule on recent questions. */
  preview?: boolean;
}

/** How a feed is read; by default its rows replace articles. */
export interface FeedOptions {
  table?: t.FeedOptions["table"];
  mode?: t.FeedOptions["mode"];
  skipBad?: boolean;
  dryRun?: boolean;
  mirrorLimit?: number;
  force?: boolean;
  format?: string;
  delimiter?: string;
  encoding?: string;
  map?: string[];
}

export interface ImportOptions {
  skipBad?: boolean;
  mode?: "replace" | "merge" | "delete";
}

/** The service refused a request: an RFC 9457 problem. */
export class ProblemError extends Error {
  readonly status: number;
  /** Identifies the kind of problem; it never changes. Empty if another server answered, such as a proxy. */
  readonly code: string;
  readonly requestId: string;
  readonly errors: t.Finding[];

  constructor(status: number, problem: Partial<t.Problem>) {
    const { code = "", detail = "", errors = [] } = problem;
    const place = (at: t.Finding) => at.pointer || at.parameter || at.line;
    const said = errors.map((at) => (place(at) ? `${place(at)}: ${at.detail}` : at.detail));
    // The detail of a problem with one error is that of the error.
    if (!errors.some((at) => at.detail === detail)) said.unshift(detail);
    super(`${status} ${code}: ${said.join("; ")}`);
    this.name = "ProblemError";
    this.status = status;
    this.code = code;
    this.requestId = problem.request_id ?? "";
    this.errors = errors;
  }
}

/** There was no answer, or only a part of one: a lost connection or a timeout. `cause` is fetch's error. */
export class UnreachableError extends Error {
  constructor(url: string, cause: unknown) {
    const { message, cause: deeper } = cause as Error;
    super(`no answer from ${url}: ${(deeper as Error | undefined)?.message || message}`, { cause });
    this.name = "UnreachableError";
  }
}

/** The service refused some events and recorded the others. */
export class RefusedEventsError extends Error {
  /** The result or the problem of each event, in order. */
  readonly items: (t.EventItem | t.FeedbackItem)[];

  constructor(items: (t.EventItem | t.FeedbackItem)[]) {
    const refused = items.flatMap((item, index) => ("recorded" in item ? [] : [`event ${index}: ${item.detail}`]));
    const more = refused.length > 3 ? `; and ${refused.length - 3} more` : "";
    super(`${refused.length} of ${items.length} events were refused: ${refused.slice(0, 3).join("; ")}${more}`);
    this.name = "RefusedEventsError";
    this.items = items;
  }
}

const IDEMPOTENT = ["GET", "HEAD", "PUT", "DELETE"];
const TEMPORARY = [502, 503, 504];
/** Compressing a completion takes longer than sending it as it is. Browsers decide for themselves. */
const PLAIN = { "Accept-Encoding": "identity" };
const BYTES = { "Content-Type": "application/octet-stream" };

/** A path; a slash in an id is %2F. A step of dots would lead to another path, and an empty one to the whole table. */
function at(...steps: (string | number)[]): string {
  for (const step of steps) {
    if (["", ".", ".."].includes(String(step))) throw new TypeError(`${JSON.stringify(step)} is no id that can be part of an address`);
  }
  return "/" + steps.map((step) => encodeURIComponent(step)).join("/");
}

const isHere = (host: string) => /^(127\.[\d.]+|\[::1\]|(.+\.)?localhost)$/.test(host);

const conditions = ({ ifMatch, ifNoneMatch }: Conditions) => ({ "If-Match": ifMatch, "If-None-Match": ifNoneMatch });

/** How many seconds to wait: what the service says, or twice as long each time. */
function pause(attempt: number, answer?: Response): number {
  const said = answer?.headers.get("retry-after") ?? "";
  if (/^\d+$/.test(said)) return Number(said);
  const date = Date.parse(said);
  if (!Number.isNaN(date)) return Math.max(0, (date - Date.now()) / 1000);
  return Math.min(0.25 * 2 ** attempt, 8) * (0.5 + Math.random() / 2);
}

const sleep = (seconds: number, signal?: AbortSignal) =>
  new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => (signal?.removeEventListener("abort", stop), resolve()), seconds * 1000);
    const stop = () => (clearTimeout(timer), reject(signal?.reason));
    signal?.addEventListener("abort", stop, { once: true });
  });

async function problem(answer: Response): Promise<ProblemError> {
  const text = await answer.text();
  try {
    return new ProblemError(answer.status, JSON.parse(text));
  } catch {
    return new ProblemError(answer.status, { detail: text.slice(0, 200) });
  }
}

export class Client {
  readonly #options: Required<Omit<Options, "key" | "signal">> & Pick<Options, "key" | "signal">;

  constructor(options: Options = {}) {
    const url = (options.url ?? "http://127.0.0.1:8080").replace(/\/+$/, "");
    const { protocol, hostname } = new URL(url);
    if (options.key && protocol !== "https:" && !options.allowHttp && !isHere(hostname)) {
      throw new TypeError(`over http everyone on the way to ${hostname} could read the key: use https://, or set allowHttp`);
    }
    const defaults = { allowHttp: false, retries: 3, maxWait: 60, timeout: 30, fetch: globalThis.fetch.bind(globalThis) };
    const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
    this.#options = { ...defaults, ...given, url };
  }

  /** The same client with other options: `client.with({ signal, timeout: 2 }).completeOutfit(…)`. */
  with(options: Options): Client {
    return new Client({ ...this.#options, ...options });
  }

  /** Any request, with the client's key and retries: for headers of the answer, such as the ETag. */
  async request(method: string, path: string, request: Request = {}): Promise<Response> {
    const { key, retries, maxWait, timeout, signal: stop, fetch } = this.#options;
    const url = new URL(this.#options.url + "/v1" + path);
    for (const [name, value] of Object.entries(request.query ?? {})) {
      for (const one of [value].flat()) if (one !== undefined) url.searchParams.append(name, String(one));
    }
    const headers = new Headers(key ? { Authorization: `Bearer ${key}` } : {});
    if (request.json !== undefined) headers.set("Content-Type", "application/json");
    for (const [name, value] of Object.entries(request.headers ?? {})) if (value !== undefined) headers.set(name, value);
    const content = request.json === undefined ? request.body : JSON.stringify(request.json);
    const once = content instanceof ReadableStream;
    const repeat = !once && (request.repeat ?? IDEMPOTENT.includes(method));
    for (let attempt = 0; ; attempt++) {
      const last = attempt >= retries;
      const body = typeof content === "function" ? content() : content;
      const signals = [stop, request.patient ? undefined : AbortSignal.timeout(Math.ceil(timeout * 1000))];
      const signal = AbortSignal.any(signals.filter((signal) => signal !== undefined));
      // Node sends a stream only with `duplex`; browsers are given texts.
      const init: RequestInit & { duplex: "half" } = { method, headers, body: body ?? null, signal, duplex: "half" };
      let wait;
      try {
        const answer = await fetch(url, init);
        if (answer.ok) return answer;
        wait = pause(attempt, answer);
        // The service did nothing before it said 429.
        const again = answer.status === 429 ? !once : repeat && TEMPORARY.includes(answer.status);
        if (last || !again || wait > maxWait) throw await problem(answer);
        await answer.body?.cancel();
      } catch (error) {
        if (stop?.aborted || error instanceof ProblemError) throw error;
        if (last || (wait === undefined && !repeat)) throw new UnreachableError(this.#options.url, error);
        wait ??= pause(attempt);
      }
      await sleep(wait, stop);
    }
  }

  async #json<T>(method: string, path: string, request?: Request): Promise<T> {
    return this.#read((await this.request(method, path, request)).json());
  }

  /** The body, which may be lost on the way after its head arrived. */
  async #read<T>(body: Promise<T>): Promise<T> {
    return body.catch((error: unknown) => {
      throw this.#options.signal?.aborted || error instanceof SyntaxError ? error : new UnreachableError(this.#options.url, error);
    });
  }

  #ask<T>(path: string, json: unknown): Promise<T> {
    return this.#json("POST", path, { json, repeat: true, headers: PLAIN });
  }

  async *#pages<T>(path: string, query: NonNullable<Request["query"]>): AsyncGenerator<T, void, undefined> {
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page: { items: T[]; next_cursor?: string | null } = await this.#json("GET", path, {
        query: { ...query, cursor },
      });
      yield* page.items;
      cursor = page.next_cursor ?? null;
    }
  }

  async #import<T = t.Received>(table: string, rows: Rows, { skipBad, mode }: ImportOptions): Promise<T> {
    const query = { skip_bad: skipBad, mode };
    const headers = { "Content-Type": "application/x-ndjson" };
    return this.#json("POST", at(table, "bulk"), { query, headers, body: await lines(rows), patient: true });
  }

  // Completion

  /** Suggests articles for each null of the outfit. */
  completeOutfit = (body: t.Complete): Promise<t.Completion> => this.#ask("/complete", body);

  /** Completes any number of outfits, up to `size` in a request: each gets its answer or its problem, in order. */
  async *completeOutfits(items: Iterable<t.Complete>, size = 64): AsyncGenerator<t.Item, void, undefined> {
    const send = async (some: t.Complete[]) => (await this.#ask<t.BatchAnswer>("/complete/batch", { items: some })).items;
    let some: t.Complete[] = [];
    let total = 0;
    for (const item of items) {
      const blanks = item.outfit.filter((slot) => slot === null).length;
      const asked = Math.max(blanks, 1) * ((item.k ?? 5) + (item.sets ?? 0));
      if (some.length > 0 && total + asked > BATCH_SUGGESTIONS) {
        yield* await send(some);
        [some, total] = [[], 0];
      }
      total += asked;
      if (some.push(item) < size) continue;
      yield* await send(some);
      [some, total] = [[], 0];
    }
    if (some.length > 0) yield* await send(some);
  }

  /** Compares methods or customers on one blank. */
  compareSuggestions = (body: t.Compare): Promise<t.Comparison> => this.#ask("/compare", body);

  /** Scores a complete outfit. */
  scoreOutfit = (body: t.Score): Promise<t.Scored> => this.#ask("/score", body);

  // Feedback

  /** Reports any number of outcomes of suggestions. If some are refused, it throws RefusedEventsError, or with `partial`
   * returns their problems among the results, in order. */
  reportFeedback = (events: Iterable<t.FeedbackEvent>, options: { partial?: boolean } = {}) =>
    this.#events<t.FeedbackItem>("/feedback", events, options);

  /** Records any number of events of customers and visitors. If some are refused, it throws RefusedEventsError, or with
   * `partial` returns their problems among the results, in order. */
  recordEvents = (events: Iterable<t.Event>, options: { partial?: boolean } = {}) =>
    this.#events<t.EventItem>("/events", events, options);

  async #events<T extends t.EventItem | t.FeedbackItem>(path: string, events: Iterable<unknown>, { partial = false }) {
    const all = [...events];
    const items: T[] = [];
    for (let from = 0; from < all.length; from += EVENTS) items.push(...(await this.#ask<T[]>(path, all.slice(from, from + EVENTS))));
    if (!partial && items.some((item) => !("recorded" in item))) throw new RefusedEventsError(items);
    return items;
  }

  /** Records events, and leaves out bad ones. Node sends them while they are read; browsers collect them first. */
  importEvents = (rows: Rows) => this.#import<t.EventsImported>("events", rows, {});

  /** How many events happened in the last days, by kind. */
  getEventCounts = (query: { days?: number } = {}): Promise<t.EventCounts> => this.#json("GET", "/events/counts", { query });

  /** Acceptance of the last days' suggestions, by day, method, release, arm, type, slot, source, or a feature of the
   * customers. The others count only some suggestions. */
  getAcceptance = (
    query: { by?: string; days?: number; release?: string; method?: string; arm?: string; type?: string; slot?: number; source?: string } = {},
  ): Promise<t.Acceptance> => this.#json("GET", "/feedback/acceptance", { query });

  getFeedbackCounts = (): Promise<t.FeedbackCounts> => this.#json("GET", "/feedback/counts");

  /** Completed outfits as training data, as they arrive. */
  async *exportAcceptedOutfits(): AsyncGenerator<Row, void, undefined> {
    const { body } = await this.request("GET", "/feedback/outfits.jsonl", { patient: true });
    const decoder = new TextDecoder();
    let rest = "";
    const reader = body!.getReader();
    try {
      for (;;) {
        const { done, value } = await this.#read(reader.read());
        rest += decoder.decode(value, { stream: !done });
        const complete = rest.split("\n");
        rest = complete.pop()!;
        for (const line of complete) yield JSON.parse(line) as Row;
        if (done) break;
      }
    } finally {
      await reader.cancel();
    }
  }

  // Articles

  /** All articles that fit, page after page; `where` names attributes and their values. */
  listArticles({ where = {}, ...query }: { search?: string; type?: string; where?: Record<string, string>; n?: number } = {}) {
    const conditions = Object.entries(where).map(([name, value]) => `${name}:${value}`);
    return this.#pages<t.Article>("/articles", { ...query, where: conditions });
  }

  getArticle = (id: string): Promise<t.Article> => this.#json("GET", at("articles", id));

  /** Adds or replaces an article; with `ifNoneMatch: "*"` it only adds. */
  putArticle = (id: string, json: t.ArticlePut, expected: Conditions = {}): Promise<t.ArticleStored> =>
    this.#json("PUT", at("articles", id), { json, headers: conditions(expected) });

  /** Sets the attributes that the change names; null removes one. */
  patchArticle = (id: string, json: t.ArticlePatch, expected: Conditions = {}): Promise<t.ArticleStored> =>
    this.#json("PATCH", at("articles", id), { json, headers: conditions(expected) });

  findSimilarArticles = (id: string, query: { customer?: string; store?: string; n?: number } = {}): Promise<t.SimilarArticles> =>
    this.#json("GET", at("articles", id, "similar"), { query });

  async deleteArticle(id: string, expected: Conditions = {}): Promise<void> {
    await this.request("DELETE", at("articles", id), { headers: conditions(expected) });
  }

  /** Stores articles, all or none. Node sends them while they are read; browsers collect them first. */
  importArticles = (rows: Rows, options: ImportOptions = {}) => this.#import("articles", rows, options);

  getCoverage = (): Promise<t.ArticleCoverage> => this.#json("GET", "/coverage");

  // Customers

  /** All customers that fit, page after page. */
  listCustomers = (query: { search?: string; n?: number } = {}) => this.#pages<t.Customer>("/customers", query);

  getCustomer = (id: string): Promise<t.Customer> => this.#json("GET", at("customers", id));

  /** Adds or replaces a customer; with `ifNoneMatch: "*"` it only adds. */
  putCustomer = (id: string, features: t.Features, expected: Conditions = {}): Promise<t.CustomerStored> =>
    this.#json("PUT", at("customers", id), { json: { features }, headers: conditions(expected) });

  /** Sets the features that are named; null removes one. */
  patchCustomer = (id: string, features: t.Features, expected: Conditions = {}): Promise<t.CustomerStored> =>
    this.#json("PATCH", at("customers", id), { json: { features }, headers: conditions(expected) });

  /** Deletes everything that is stored about a customer. */
  async eraseCustomer(id: string, expected: Conditions = {}): Promise<void> {
    await this.request("DELETE", at("customers", id), { headers: conditions(expected) });
  }

  /** Everything that is stored about a customer. */
  exportCustomer = (id: string): Promise<t.CustomerExport> =>
    this.#json("GET", at("customers", id, "export"), { patient: true });

  /** A customer's outfits, page after page; with `drafts` those with blanks, too. */
  listCustomerOutfits = (id: string, query: { drafts?: boolean; n?: number } = {}) =>
    this.#pages<t.Outfit>(at("customers", id, "outfits"), query);

  /** Stores customers, all or none. Node sends them while they are read; browsers collect them first. */
  importCustomers = (rows: Rows, options: ImportOptions = {}) => this.#import("customers", rows, options);

  // Outfits

  /** Saves a customer's outfit; the same one is stored once. */
  saveOutfit = (body: t.OutfitSave): Promise<t.OutfitStored> => this.#ask("/outfits", body);

  getOutfit = (id: number): Promise<t.Outfit> => this.#json("GET", at("outfits", id));

  /** Gives a draft to a customer, names it, or sets its note. */
  patchOutfit = (id: number, json: t.OutfitPatch): Promise<t.Outfit> => this.#json("PATCH", at("outfits", id), { json });

  async deleteOutfit(id: number): Promise<void> {
    await this.request("DELETE", at("outfits", id));
  }

  /** Stores outfits, all or none. Node sends them while they are read; browsers collect them first. */
  importOutfits = (rows: Rows, options: Pick<ImportOptions, "skipBad"> = {}) => this.#import("outfits", rows, options);

  // Feeds

  /** Sends a file, which is imported in the background; `getImport` says how far it is. Node makes a Blob with `fs.openAsBlob`. */
  sendFeed(name: string, body: BodyInit, { skipBad, dryRun, mirrorLimit, ...options }: FeedOptions = {}): Promise<t.Import> {
    const query = { ...options, skip_bad: skipBad, dry_run: dryRun, mirror_limit: mirrorLimit };
    return this.#json("POST", at("feeds", name), { query, body, headers: BYTES, patient: true });
  }

  listImports = (): Promise<t.Imports> => this.#json("GET", "/imports");

  getImport = (id: number): Promise<t.Import> => this.#json("GET", at("imports", id));

  cancelImport = (id: number): Promise<t.Import> => this.#json("DELETE", at("imports", id));

  undoImport = (id: number): Promise<t.Import> => this.#json("POST", at("imports", id, "undo"));

  listFeeds = (): Promise<t.Feeds> => this.#json("GET", "/feeds");

  getFeed = (name: string): Promise<t.Feed> => this.#json("GET", at("feeds", name));

  putFeed = (name: string, json: t.Feed, expected: Conditions = {}): Promise<t.Feed> =>
    this.#json("PUT", at("feeds", name), { json, headers: conditions(expected) });

  /** Sets the fields that are named; null removes one. */
  patchFeed = (name: string, json: t.FeedPatch, expected: Conditions = {}): Promise<t.Feed> =>
    this.#json("PATCH", at("feeds", name), { json, headers: conditions(expected) });

  async deleteFeed(name: string, expected: Conditions = {}): Promise<void> {
    await this.request("DELETE", at("feeds", name), { headers: conditions(expected) });
  }

  fetchFeed = (name: string, query: { again?: boolean; force?: boolean } = {}): Promise<t.Import> =>
    this.#json("POST", at("feeds", name, "fetch"), { query });

  // Rules

  listRules = (): Promise<t.Rules> => this.#json("GET", "/rules");

  getRule = (name: string): Promise<t.Rule> => this.#json("GET", at("rules", name));

  /** Adds or replaces a rule; with `dryRun` it only checks it. */
  putRule = (name: string, json: t.Rule, { dryRun, preview, ...expected }: RuleOptions = {}): Promise<t.RuleStored> =>
    this.#json("PUT", at("rules", name), { json, query: { dry_run: dryRun, preview }, headers: conditions(expected) });

  /** Sets the fields that are named; null removes one. */
  patchRule = (name: string, json: t.RulePatch, { dryRun, preview, ...expected }: RuleOptions = {}): Promise<t.RuleStored> =>
    this.#json("PATCH", at("rules", name), { json, query: { dry_run: dryRun, preview }, headers: conditions(expected) });

  async deleteRule(name: string, expected: Conditions = {}): Promise<void> {
    await this.request("DELETE", at("rules", name), { headers: conditions(expected) });
  }

  /** Outcomes of suggestions that the rule could change, with rules and in the holdout. */
  getRuleEffect = (name: string, days?: number): Promise<t.RuleEffects> =>
    this.#json("GET", at("rules", name, "effect"), { query: { days } });

  getHoldout = (): Promise<t.Holdout> => this.#json("GET", "/holdout");

  setHoldout = (json: t.Holdout): Promise<t.Holdout> => this.#json("PUT", "/holdout", { json });

  // Experiments

  listExperiments = (): Promise<t.Experiments> => this.#json("GET", "/experiments");

  getExperiment = (name: string): Promise<t.Experiment> => this.#json("GET", at("experiments", name));

  /** Adds an experiment, or replaces a draft. */
  putExperiment = (name: string, json: t.Experiment, expected: Conditions = {}): Promise<t.Experiment> =>
    this.#json("PUT", at("experiments", name), { json, headers: conditions(expected) });

  /** Starts, ramps, stops or ships it. */
  patchExperiment = (name: string, json: t.ExperimentPatch, expected: Conditions = {}): Promise<t.Experiment> =>
    this.#json("PATCH", at("experiments", name), { json, headers: conditions(expected) });

  /** Deletes a draft. */
  async deleteExperiment(name: string, expected: Conditions = {}): Promise<void> {
    await this.request("DELETE", at("experiments", name), { headers: conditions(expected) });
  }

  /** What it shows, and what may be concluded. */
  getExperimentFigures = (name: string): Promise<t.ExperimentFigures> =>
    this.#json("GET", at("experiments", name, "figures"));

  /** A row for each customer and arm. */
  getExperimentCustomers = async (name: string, format: "csv" | "parquet" = "csv"): Promise<ArrayBuffer> =>
    this.#read((await this.request("GET", at("experiments", name, "customers"), { query: { format } })).arrayBuffer());

  // Looks

  /** Looks with an article, for its product page. */
  completeLook = (
    article: string,
    query: { customer?: string; n?: number; total_max?: number; store?: string; explain?: boolean } = {},
  ): Promise<t.Looks> => this.#json("GET", at("articles", article, "looks"), { query });

  /** All looks, page after page. */
  listLooks = (query: { n?: number } = {}) => this.#pages<t.Look>("/looks", query);

  getLook = (name: string): Promise<t.Look> => this.#json("GET", at("looks", name));

  putLook = (name: string, json: t.Look, expected: Conditions = {}): Promise<t.LookStored> =>
    this.#json("PUT", at("looks", name), { json, headers: conditions(expected) });

  /** Sets the fields that are named; null removes one. */
  patchLook = (name: string, json: t.LookPatch, expected: Conditions = {}): Promise<t.LookStored> =>
    this.#json("PATCH", at("looks", name), { json, headers: conditions(expected) });

  async deleteLook(name: string, expected: Conditions = {}): Promise<void> {
    await this.request("DELETE", at("looks", name), { headers: conditions(expected) });
  }

  // Releases and the service

  listMethods = (): Promise<t.Methods> => this.#json("GET", "/methods");

  listReleases = (): Promise<t.Releases> => this.#json("GET", "/releases");

  /** Sends a packed release, with the SHA-256 of the archive in hexadecimal. */
  sendRelease = (body: BodyInit, sha256: string): Promise<t.Release> =>
    this.#json("POST", "/releases", { body, headers: { ...BYTES, "X-Content-SHA256": sha256 }, patient: true });

  activateRelease = (name: string, force = false): Promise<t.Methods> =>
    this.#json("POST", at("releases", name, "activate"), { query: { force }, patient: true });

  getRouting = (): Promise<t.Routing> => this.#json("GET", "/routing");

  setRouting = (json: t.Routing): Promise<t.Routing> => this.#json("PUT", "/routing", { json });

  getReadiness = (): Promise<t.Ready> => this.#json("GET", "/readyz");

  getLiveness = (): Promise<t.Alive> => this.#json("GET", "/livez");

  /** All measurements, as OpenMetrics text. */
  getMetrics = async (): Promise<string> => this.#read((await this.request("GET", "/metrics")).text());
}

/** JSON Lines: a stream in Node. Browsers send none over HTTP/1.1, so they are given a text. */
async function lines(rows: Rows): Promise<BodyInit | (() => BodyInit)> {
  if ("process" in globalThis) {
    // What iterates over itself, such as a generator, can be read once.
    const once = Symbol.asyncIterator in rows || (rows[Symbol.iterator]() as unknown) === rows;
    return once ? stream(rows) : () => stream(rows);
  }
  let text = "";
  for await (const piece of encode(rows)) text += piece;
  return text;
}

function stream(rows: Rows): ReadableStream<Uint8Array> {
  const pieces = encode(rows);
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await pieces.next();
      done ? controller.close() : controller.enqueue(new TextEncoder().encode(value));
    },
  });
}

/** In pieces of about 64 KiB. */
async function* encode(rows: Rows): AsyncGenerator<string, void, undefined> {
  let piece = "";
  for await (const row of rows) {
    piece += JSON.stringify(row) + "\n";
    if (piece.length < 1 << 16) continue;
    yield piece;
    piece = "";
  }
  yield piece;
}
