-- Everything that the service stores: who may do what, the shop's catalogue and customers, outfits, and what became of
-- suggestions. migrations/postgres/ has the same tables for Postgres; this file gives the reasons.
--
-- Times are milliseconds since 1970 and come from the program: one clock rules, and both databases store the same. JSON
-- is text, because its meaning is the program's; one statement looks inside, for acceptance by a customer's feature.
-- Tables are strict: SQLite would otherwise take any type in any column. Constraints have names, by which the program
-- turns a violated one into an answer for the client.

-- ## People and programs

create table people (
    id integer primary key autoincrement,
    -- As the person writes it, and in lower case: "Ada" and "ada" are one account, so no capital makes an impostor.
    name text not null,
    name_key text not null,
    role text not null,
    -- argon2id's own text form. Null until a password is set: the person signs in with a link.
    password_hash text,
    created_at integer not null,
    -- Null until somebody signs in with the account.
    signed_in_at integer,
    -- Accounts with which somebody signed in are disabled, never deleted or renamed: the audit log keeps naming them.
    disabled_at integer,
    constraint people_name_unique unique (name_key),
    constraint people_role_valid check (role in ('stylist', 'analyst', 'merchandiser', 'admin'))
) strict;

create table sessions (
    -- SHA-256 of the cookie's token: a reader of this table cannot sign in with it.
    token_hash blob not null,
    person_id integer not null,
    created_at integer not null,
    expires_at integer not null,
    -- A session that is not used for some hours ends.
    last_seen_at integer not null,
    constraint sessions_token_unique primary key (token_hash),
    constraint sessions_person_known foreign key (person_id) references people (id) on delete cascade
) strict;

-- A new password ends the person's sessions.
create index sessions_by_person on sessions (person_id);
-- Expired ones are deleted now and then.
create index sessions_by_expiry on sessions (expires_at);

-- Links that sign a person in once: the first admin's, a new colleague's, that of a person who forgot a password.
create table sign_in_links (
    -- SHA-256 of the link's token.
    token_hash blob not null,
    person_id integer not null,
    created_at integer not null,
    expires_at integer not null,
    constraint sign_in_links_token_unique primary key (token_hash),
    -- A newer link replaces the earlier one, which may have gone astray.
    constraint sign_in_links_person_unique unique (person_id),
    constraint sign_in_links_person_known foreign key (person_id) references people (id) on delete cascade
) strict;

create table api_keys (
    id integer primary key autoincrement,
    -- SHA-256 of the key, which is shown once. Keys are long and random, so a fast hash is safe.
    token_hash blob not null,
    label text not null,
    -- A JSON array of texts.
    scopes text not null,
    created_at integer not null,
    expires_at integer,
    last_used_at integer,
    -- Revoked, never deleted: the audit log keeps naming them.
    revoked_at integer,
    -- Of a publishable key: the origins of the pages that may use it, a JSON array, and the secret with which the shop's backend
    -- signs the ids of customers. A signature is checked with the secret itself, so no digest can take its place.
    origins text,
    signing_secret text,
    constraint api_keys_token_unique unique (token_hash),
    constraint api_keys_publishable_whole check ((origins is null) = (signing_secret is null))
) strict;

-- What people and programs changed. The transaction of a change writes its entry.
create table audit_log (
    -- The order of entries, and the cursor of lists.
    seq integer primary key autoincrement,
    at integer not null,
    -- At most one of the two; neither when the service itself acted, or a visitor who could not sign in.
    person_id integer,
    key_id integer,
    -- The IP address that the request came from; null for what the service did itself. Behind a proxy it is the proxy's, unless the
    -- settings trust the proxy to name its caller.
    peer text,
    action text not null,
    subject text not null,
    -- A JSON object.
    details text not null,
    -- The customer that the entry is about, if there is one: a search of subjects and details could not find them for
    -- certain. No foreign key, because the entry may come after the customer is gone.
    customer_id text,
    constraint audit_log_person_known foreign key (person_id) references people (id),
    constraint audit_log_key_known foreign key (key_id) references api_keys (id),
    constraint audit_log_actor_valid check (person_id is null or key_id is null)
) strict;

-- A rule's versions, of which the page of a rule shows the latest.
create index audit_log_by_rule on audit_log (subject, seq) where action in ('rule.put', 'rule.delete');
-- Erasing a customer must find the entries about them; most entries are about no customer.
create index audit_log_by_customer on audit_log (customer_id) where customer_id is not null;
-- The history of an outfit that is not for anybody yet.
create index audit_log_by_outfit on audit_log (subject) where customer_id is null and substr(action, 1, 7) = 'outfit.';

-- The database itself keeps the log append-only. Only subject, details and customer change: they are blanked when the
-- customer is erased.
create trigger audit_log_keeps_entries before delete on audit_log
begin
    select raise(abort, 'audit_log is append-only');
end;
create trigger audit_log_keeps_facts before update of seq, at, person_id, key_id, peer, action on audit_log
begin
    select raise(abort, 'audit_log is append-only');
end;

-- ## What replicas share

-- One row a setting: the active release, the routing, the keys that sign tickets. They are few and read whole, so their
-- values are JSON or plain text that only the program understands.
create table settings (
    name text not null,
    value text not null,
    constraint settings_name_unique primary key (name)
) strict;

-- Numbers that grow with every change. A holder of a copy in memory, in this process or another one, compares the number
-- instead of reading the table.
create table revisions (
    name text not null,
    value integer not null,
    constraint revisions_name_unique primary key (name)
) strict;

-- Erasures since the file was last rewritten: an erasure leaves copies of rows in the free space of pages, which only a
-- rewrite removes (src/store/erasures.rs).
insert into revisions (name, value) values ('articles', 0), ('settings', 0), ('looks', 0), ('erasures', 0), ('imports', 2), ('latest_import', 0);

-- What the catalogue takes in each replica's memory, so that a change which does not fit is refused before it is committed: bytes
-- and number of articles, which triggers of `articles` keep; the releases that a replica held last, which have a catalogue each,
-- and the bytes of an article's rows in their models.
insert into revisions (name, value) values ('catalogue_bytes', 0), ('catalogue_articles', 0), ('catalogues', 1), ('row_bytes', 2000);

-- Which article each revision of the catalogue changed. A replica keeps the catalogue in memory; reading 300,000 articles
-- after each change would take seconds, so it reads this table and the articles that changed.
--
-- The transaction that counts a change in `revisions` writes these rows with the new count. An empty id stands for all
-- articles, after an import that changes many. Only the latest revisions are kept; a replica that is further behind reads
-- the whole catalogue.
create table article_changes (
    revision integer not null,
    -- No foreign key: the article may be gone.
    article_id text not null,
    constraint article_changes_unique primary key (revision, article_id)
) strict, without rowid;

-- ## Imports

-- An import of a million rows would hold the one writer of SQLite for a minute. So it writes in many short transactions, of
-- which no reader sees a part: readers use the views visible_articles, visible_customers and visible_outfits, which show the
-- old row while the import runs that wrote the new one. `imports` in revisions is the number of imports that began or ended: it
-- is odd while one runs, and that is its number. Counting on, at the end, makes all its rows visible at once. It starts at 2
-- because 0 stands for no import. Undoing an import sets it back to that import's number, which makes all of its rows invisible at
-- once, until they are what they were. `latest_import` is then the number of the latest one, so that none is used twice.
create view running_import as select value as number from revisions where name = 'imports';

-- The rows that were put, changed or deleted by others while an import runs, which it leaves alone: SHA-256 of table and id, in
-- hexadecimal, because the id may be an erased customer's.
create table import_skips (
    row_hash text not null,
    constraint import_skips_row_unique primary key (row_hash)
) strict;

-- The imports of the last week whose rows still have what they were before, so that they can be undone.
create table undoable_imports (
    -- As in articles.
    number integer not null,
    -- Its row in imports, if it has one.
    import_id integer,
    ended_at integer not null,
    constraint undoable_imports_number_unique primary key (number)
) strict;

-- Feeds that are imported in the background. The last thirty of each table that ended stay, so that people see what a feed did.
create table imports (
    -- autoincrement: an address of an import that is gone does not become another's.
    id integer primary key autoincrement,
    -- The caller's name for the feed.
    feed text not null,
    table_name text not null,
    -- A JSON object: how the feed is read and stored.
    options text not null,
    -- Who started it, as in audit_log.
    person_id integer,
    key_id integer,
    state text not null,
    created_at integer not null,
    started_at integer,
    ended_at integer,
    -- When its process last said that it is alive, every second. One that says nothing was killed.
    seen_at integer not null,
    -- 1 if someone wants it to stop. Its process may be another one.
    cancelled integer not null default 0,
    -- How much of the file was read, and all of it: bytes, or rows.
    read integer not null default 0,
    total integer not null,
    -- A JSON object: counts, bad rows by kind, and why it failed. Nothing else reads it. Of customers and outfits it quotes no
    -- value, so that an erasure need not look here.
    result text,
    constraint imports_person_known foreign key (person_id) references people (id),
    constraint imports_key_known foreign key (key_id) references api_keys (id),
    constraint imports_state_valid
        check (state in ('waiting', 'running', 'done', 'undone', 'unchanged', 'failed', 'cancelled', 'interrupted'))
) strict;

-- The addresses from which the service itself fetches feeds, with what it knows of each. `imports` says what a fetch did.
create table feeds (
    -- As in imports. A feed's row may come and go; its imports stay.
    name text not null,
    -- JSON as in rules. It has the secrets that the address's query may have, and the header Authorization, as they must be sent. Nothing
    -- shows them again.
    body text not null,
    -- As in articles; together they make the version, which callers see, from no secret.
    revision integer not null default 1,
    created_at integer not null,
    -- A JSON object of the last fetches: how the file that was read last is known again, the last import, which may be gone from the
    -- list, and the failures in a row. The second is an alert, which must say why also if the list of imports no longer does.
    state text,
    -- The process that fetches it, and until when it need not renew that. A fetch that ends clears both; if its process is killed, the
    -- holder stays, and another process starts again when the lease has run out.
    lease_holder text,
    leased_until integer,
    constraint feeds_name_unique primary key (name)
) strict;

-- What merchandisers want of suggestions. A rule's conditions name attributes and features, which every shop and release has its
-- own of, so it is JSON whose meaning only the program knows. All rules are read together, when the count of the settings changes.
create table rules (
    name text not null,
    body text not null,
    -- As in articles; together with the body they make the version.
    revision integer not null default 1,
    created_at integer not null,
    constraint rules_name_unique primary key (name)
) strict;

-- Outfits that editors publish. JSON as in rules, and read together, too, when their own count changes: a shop has many more looks than
-- rules, and changes them seldom. They name articles that the catalogue may not have yet, or no longer.
create table looks (
    name text not null,
    body text not null,
    -- As in rules.
    revision integer not null default 1,
    created_at integer not null,
    constraint looks_name_unique primary key (name)
) strict;

-- Experiments between methods and sets of rules. JSON as in rules; those that run are read together with the settings.
create table experiments (
    name text not null,
    body text not null,
    -- As in rules.
    revision integer not null default 1,
    created_at integer not null,
    constraint experiments_name_unique primary key (name)
) strict;

-- ## The catalogue and the customers

create table articles (
    -- The shop's own key. Bytes order it: lists, cursors and exports are the same on both databases.
    id text not null,
    type text not null,
    -- A JSON object: every shop's attributes differ.
    attributes text not null,
    -- What a search looks at: id, type and textual attributes, lower-cased by the program, because SQLite's lower() leaves
    -- Ä alone. No B-tree helps a search that begins in the middle of a word, so there is no index: the table is read along
    -- its primary key until a page is full.
    name_key text not null,
    -- Bytes that the article takes in a replica's memory, by the program's estimate; 0 if an import retires it.
    memory integer not null,
    -- 1 when the row is new, one more for each change: an upsert says in one statement whether it added, changed or left
    -- the row alone. With created_at it makes the row's version (ETag).
    revision integer not null default 1,
    created_at integer not null,
    -- The import that wrote the row last, or 0, and what the row was before; see "Imports" above. The old type is null if the
    -- import added the row, and the type is empty if it retires it. Both stay while the import can be undone.
    import integer not null default 0,
    old_type text,
    old_attributes text,
    old_name_key text,
    old_memory integer,
    constraint articles_id_unique primary key (id)
) strict;

create table customers (
    id text not null,
    -- A JSON object: text, number or list of texts by name. Profiles outlive schemas, so the database does not know what
    -- the features mean.
    features text not null,
    -- As in articles, of the id and the features' texts.
    name_key text not null,
    revision integer not null default 1,
    created_at integer not null,
    -- A customer's export says when the profile changed.
    updated_at integer not null,
    -- As in articles.
    import integer not null default 0,
    old_features text,
    old_name_key text,
    old_updated_at integer,
    constraint customers_id_unique primary key (id)
) strict;

-- What a basket holds: the variants in the articles' attributes, each with its article, so that a variant is found by its id.
-- Triggers keep it: what is written to articles is here in the same statement. An article that an import wrote has its old
-- variants and the new ones here; while it runs, a reader looks into the article. A variant may move to another article in one
-- import, so its id alone is no key.
create table variants (
    id text not null,
    article_id text not null,
    -- 1 if the article had it before the import that wrote it last, and no longer has it.
    is_old integer not null default 0,
    constraint variants_unique primary key (id, article_id)
) strict, without rowid;

create index variants_by_article on variants (article_id);

create trigger articles_add_variants after insert on articles when instr(new.attributes, '"variants"') > 0
begin
    insert into variants (id, article_id)
    select distinct json_extract(new.attributes, fullkey || '.id'), new.id from json_each(new.attributes, '$.variants')
    where json_type(new.attributes, fullkey || '.id') = 'text';
end;
create trigger articles_change_variants after update of attributes, old_attributes on articles
when instr(old.attributes || coalesce(old.old_attributes, '') || new.attributes, '"variants"') > 0
begin
    delete from variants where article_id = old.id;
    insert into variants (id, article_id, is_old)
    select id, new.id, min(is_old) from (
        select json_extract(new.attributes, fullkey || '.id') as id, new.type = '' as is_old
        from json_each(new.attributes, '$.variants') where json_type(new.attributes, fullkey || '.id') = 'text'
        union all
        select json_extract(new.old_attributes, fullkey || '.id'), 1
        from json_each(new.old_attributes, '$.variants') where json_type(new.old_attributes, fullkey || '.id') = 'text'
    ) as variants group by id;
end;
create trigger articles_remove_variants after delete on articles
begin
    delete from variants where article_id = old.id;
end;

-- The sums in revisions. A running import's rows count, so that no other change takes the room that it may need.
create trigger articles_add_memory after insert on articles
begin
    update revisions set value = value + new.memory where name = 'catalogue_bytes';
    update revisions set value = value + 1 where name = 'catalogue_articles';
end;
create trigger articles_change_memory after update of memory on articles when new.memory <> old.memory
begin
    update revisions set value = value + new.memory - old.memory where name = 'catalogue_bytes';
    update revisions set value = value + (new.memory > 0) - (old.memory > 0) where name = 'catalogue_articles';
end;
create trigger articles_remove_memory after delete on articles when old.memory > 0
begin
    update revisions set value = value - old.memory where name = 'catalogue_bytes';
    update revisions set value = value - 1 where name = 'catalogue_articles';
end;

-- What is left to clear after an import that cannot be undone any more.
create index articles_replaced on articles (import, id) where old_type is not null;
create index customers_replaced on customers (import, id) where old_features is not null;
-- Retired articles, which no reader counts.
create index articles_retired on articles (id) where type = '';

create view visible_articles as
select id, case when import = (select number from running_import) then old_type else type end as type,
    case when import = (select number from running_import) then old_attributes else attributes end as attributes,
    case when import = (select number from running_import) then old_name_key else name_key end as name_key,
    revision - case when import = (select number from running_import) then 1 else 0 end as revision, created_at
from articles where case when import = (select number from running_import) then old_type else type end <> '';

create view visible_customers as
select id, case when import = (select number from running_import) then old_features else features end as features,
    case when import = (select number from running_import) then old_name_key else name_key end as name_key,
    revision - case when import = (select number from running_import) then 1 else 0 end as revision, created_at,
    case when import = (select number from running_import) then old_updated_at else updated_at end as updated_at
from customers where import <> (select number from running_import) or old_features is not null;

-- The latest customers, for the queue of those who have no saved outfit.
create index customers_by_age on customers (created_at, id);

-- Stylists' notes about customers, in order.
create table customer_notes (
    id integer primary key autoincrement,
    customer_id text not null,
    -- Who wrote it.
    person_id integer not null,
    note text not null,
    at integer not null,
    constraint customer_notes_customer_known
        foreign key (customer_id) references customers (id) on delete cascade,
    constraint customer_notes_person_known foreign key (person_id) references people (id)
) strict;

create index customer_notes_by_customer on customer_notes (customer_id, id);

-- ## Outfits

-- Outfits that were imported, or saved by a stylist or a program. Stylists name saved ones,
-- change them, delete them, bring them back and show them to customers. An imported outfit stays as it is.
create table outfits (
    -- The order of arrival, for exports and cursors. autoincrement: a number is never used again, so a cursor does not
    -- point at another outfit after a deletion.
    seq integer primary key autoincrement,
    -- SHA-256 over customer, sorted articles and features: a file that is imported twice, or an outfit that is saved twice,
    -- is stored once. It leaves the split out, so that a later file may move the outfit into another. Of an outfit that one
    -- file repeats, the repetitions hash their number too, and come back as often as they were there. A deleted outfit has
    -- another digest, so that the same outfit can be saved again.
    digest blob not null,
    -- An outfit is about a person: erasing the customer erases it. Null in a draft that is not for anybody yet.
    customer_id text,
    -- A JSON array of 1 to 12 article ids, whatever the live schema allows, in which an empty id is a blank. An outfit is a value, so there is no table of its
    -- articles, and it keeps an article that leaves the catalogue.
    articles text not null,
    -- Empty for none.
    split text not null,
    -- A JSON object as in customers, of what belongs to the outfit, such as the occasion.
    features text not null,
    origin text not null,
    -- Who saved it, if a person did.
    person_id integer,
    -- Empty for none. The customer sees the name; the note is the shop's own.
    name text not null default '',
    note text not null default '',
    -- What a search looks in: name, customer and author in lower case. Empty for imported outfits, which no list of saved
    -- outfits has.
    name_key text not null,
    -- 1 for an outfit with blanks, or with too few articles for the schema that was live when it was saved. Training and
    -- exports leave drafts out.
    draft integer not null,
    -- A JSON object: by slot, the name of the suggestion that a piece came from. A draft's count as accepted once it is complete.
    suggested text not null default '{}',
    -- As in articles. A change names the revision that it was made from, so colleagues do not undo each other's work.
    revision integer not null default 1,
    created_at integer not null,
    -- When it was changed last, or created.
    changed_at integer not null,
    -- A deleted outfit can be brought back for a while.
    deleted_at integer,
    -- The customer's link: SHA-256 of its token, so that this table does not give the address away.
    link_hash blob,
    link_expires_at integer,
    -- What the link says above the outfit. Empty for nothing.
    message text not null default '',
    -- What the customer answered there: a JSON array of objects with `at`, `kind`, perhaps `article`, and `text`.
    replies text not null default '[]',
    -- When they answered last, until a stylist has seen to it.
    replied_at integer,
    -- What its articles were when it was saved: a JSON array of articles with the attributes that pages show, so that one that
    -- leaves the catalogue keeps its name and picture.
    pieces text not null default '[]',
    -- As in articles.
    import integer not null default 0,
    old_split text,
    constraint outfits_digest_unique unique (digest),
    constraint outfits_customer_known foreign key (customer_id) references customers (id) on delete cascade,
    constraint outfits_person_known foreign key (person_id) references people (id),
    constraint outfits_customer_or_draft check (customer_id is not null or draft = 1),
    constraint outfits_split_valid check (split in ('', 'train', 'validation')),
    constraint outfits_origin_valid check (origin in ('imported', 'saved'))
) strict;

-- A customer's page lists their outfits in order; erasing a customer finds them.
create index outfits_by_customer on outfits (customer_id, seq);
-- Lists of saved outfits, the latest change first; a shop may have imported a million others.
create index outfits_saved on outfits (changed_at, seq) where origin <> 'imported';
-- The customers whose last saved outfit is the oldest.
create index outfits_saved_for on outfits (customer_id, created_at) where origin <> 'imported';
-- Those to remove for good.
create index outfits_deleted on outfits (deleted_at) where deleted_at is not null;
create unique index outfits_link_unique on outfits (link_hash) where link_hash is not null;
-- The queue of replies.
create index outfits_replied on outfits (replied_at) where replied_at is not null;
create index outfits_replaced on outfits (import, seq) where old_split is not null;

create view visible_outfits as
select seq, digest, customer_id, articles,
    nullif(case when import = (select number from running_import) then old_split else split end, '') as split,
    features, origin, person_id, name, note, name_key, draft, suggested,
    revision - case when import = (select number from running_import) then 1 else 0 end as revision,
    created_at, changed_at, deleted_at, link_hash, link_expires_at, message, replies, replied_at,
    pieces
from outfits where import <> (select number from running_import) or old_split is not null;

-- ## Feedback

-- What became of suggestions. One row is one report of what happened to one suggested article.
create table feedback_events (
    -- SHA-256 of the caller's idempotency key: a report that is sent again changes nothing. Only its hash, because such keys
    -- may contain a customer's id, and events keep no trace of an erased person.
    key_hash blob not null,
    -- SHA-256 over completion, slot and article, in the first report of the kind. Null in repeats, which figures leave
    -- out; they stay because a suggestion may be accepted, rejected and accepted again.
    suggestion blob,
    kind text not null,
    completion_id text not null,
    slot integer not null,
    article_id text not null,
    rank integer not null,
    -- What made the suggestion: releases come and go, the counts stay true.
    release text not null,
    method text not null,
    -- The experiment's arm, if one was running.
    arm text,
    -- Forgotten when the customer is erased; the event still counts.
    customer_id text,
    at integer not null,
    -- In events that count: the day on which the suggestion was shown. Null in repeats.
    shown_day integer,
    -- In events that count: the row of feedback_counts that counts the suggestion and its outcomes.
    counts_id integer,
    -- When a stylist took the customer's refusal back: the article is suggested again. The event still counts.
    withdrawn_at integer,
    -- Why the suggestion was refused, if the stylist said so: a word of the program's.
    reason text,
    -- In events that count: a byte, 1 if the customer was held out from the shop's rules, and the digests of those that could
    -- change the suggestion. Null if feedback counts for none.
    rules blob,
    constraint feedback_events_key_unique primary key (key_hash),
    -- Two replicas that record the same purchase at the same time count it once. It also finds the event `shown` of a
    -- suggestion.
    constraint feedback_events_suggestion_unique unique (suggestion, kind),
    constraint feedback_events_customer_known
        foreign key (customer_id) references customers (id) on delete set null,
    constraint feedback_events_kind_valid check (kind in ('shown', 'accepted', 'rejected', 'bought', 'returned', 'kept'))
) strict;

-- All that happened to one completion.
create index feedback_events_by_completion on feedback_events (completion_id);
-- Erasing a customer must find their events; most events of a shop without accounts have none. Acceptance by a feature of the
-- customers is counted from this index alone.
create index feedback_events_by_customer on feedback_events (customer_id, shown_day, kind)
    where customer_id is not null;
-- The customers who refused suggestions since their last outfit.
create index feedback_events_refused on feedback_events (customer_id, at)
    where kind = 'rejected' and customer_id is not null;

-- Refusals by their reasons; most have none.
create index feedback_events_reasons on feedback_events (shown_day, reason) where reason is not null;

-- What became of the suggestions of a day, because reading half a million events would take a second. Outcomes count for the
-- day on which the suggestion was shown, whenever they come, so nothing is accepted more often than shown. Nothing here is
-- about a customer.
create table feedback_counts (
    id integer primary key,
    -- Days since 1970, in UTC.
    shown_day integer not null,
    release text not null,
    method text not null,
    -- Empty without an experiment.
    arm text not null,
    -- The type when the article was shown: a later change of the catalogue moves no figure. Empty if the catalogue lacked it.
    article_type text not null,
    -- 1 if the release was not trained with the article, 0 if it was. -1 if the release was no longer live when the event
    -- came: only the live release's vocabulary is at hand.
    is_new integer not null,
    -- The place in the outfit that the suggestion was for.
    slot integer not null,
    -- `pages` if a page said so without naming a customer: anyone can make that up, so it is a figure of its own. Otherwise `shop`.
    source text not null,
    shown integer not null,
    accepted integer not null default 0,
    rejected integer not null default 0,
    bought integer not null default 0,
    returned integer not null default 0,
    kept integer not null default 0,
    -- Thousandths of the shop's currency: what was bought, less what came back.
    revenue integer not null default 0,
    -- The same of purchases that named no ticket, and of whose article the customer had been shown the suggestion shortly before.
    window_bought integer not null default 0,
    window_returned integer not null default 0,
    window_kept integer not null default 0,
    window_revenue integer not null default 0,
    constraint feedback_counts_key_unique unique (shown_day, release, method, arm, article_type, is_new, slot, source)
) strict;

-- ## Events

-- What customers and visitors did in the shop. A row is kept for a set time, in which an event that is sent again is recognised.
create table events (
    seq integer primary key,
    -- The first half of SHA-256 of the caller's id of the event. Callers' ids may contain a customer's, as in feedback_events.
    id_hash blob not null,
    kind text not null,
    -- An event is about a person: erasing the customer erases it.
    customer_id text,
    -- Half of SHA-256 of the visitor's id, if the caller says that the visitor consented.
    visitor_hash blob,
    article_id text not null,
    -- Null without a customer or a visitor's consent, because an order tells who it was.
    order_id text,
    -- As revenue in feedback_counts.
    value integer,
    at integer not null,
    -- How it belongs to a suggestion, as feedback_events has it. Null if it does not.
    attribution text,
    suggestion blob,
    -- In purchases, returns and kept articles that feedback_counts has: the day on which the suggestion was shown, and the row.
    shown_day integer,
    counts_id integer,
    -- In the same: what it adds to the revenue there. Of a return, at most what its purchase added is taken back.
    revenue integer,
    constraint events_id_unique unique (id_hash),
    constraint events_customer_known foreign key (customer_id) references customers (id) on delete cascade,
    constraint events_kind_valid check (kind in ('shown', 'accepted', 'rejected', 'bought', 'returned', 'kept')),
    constraint events_attribution_valid check (attribution in ('ticket', 'window'))
) strict;

-- Erasures, exports, and revenue by a feature of the customers.
create index events_by_customer on events (customer_id, shown_day) where customer_id is not null;
-- What a visitor was shown.
create index events_by_visitor on events (visitor_hash, at) where visitor_hash is not null;
-- A return finds its purchase, which may come later.
create index events_by_order on events (order_id) where order_id is not null;
-- One purchase of a suggestion counts.
create index events_by_suggestion on events (suggestion) where suggestion is not null;
-- Old ones are removed.
create index events_by_time on events (at);

-- Events by day (since 1970, in UTC) and kind, for ever. Nothing here is about a person.
create table event_counts (
    day integer not null,
    kind text not null,
    events integer not null,
    value integer not null,
    constraint event_counts_key_unique primary key (day, kind)
) strict;

-- What each customer bought, for models: beside the profile, which callers replace as a whole. Counted, because a return may
-- come before its purchase.
create table purchases (
    customer_id text not null,
    article_id text not null,
    bought integer not null,
    returned integer not null,
    -- The latest event.
    at integer not null,
    constraint purchases_unique primary key (customer_id, article_id),
    constraint purchases_customer_known foreign key (customer_id) references customers (id) on delete cascade
) strict, without rowid;

-- The same by rule, while some customers are answered without rules: of suggestions that the rule could change, for customers with
-- rules and for those who are held out. Nothing here is about a customer.
create table rule_counts (
    -- The first bytes of SHA-256 of its name: a ticket has no room for names, and the rule may be gone.
    rule blob not null,
    shown_day integer not null,
    held_out integer not null,
    shown integer not null default 0,
    accepted integer not null default 0,
    rejected integer not null default 0,
    bought integer not null default 0,
    returned integer not null default 0,
    kept integer not null default 0,
    constraint rule_counts_key_unique primary key (rule, shown_day, held_out)
) strict, without rowid;

-- What became of suggestions by customer and arm of an experiment: intervals need each customer's sums, because one customer's
-- suggestions are not independent of each other.
create table experiment_customers (
    -- Stands for the customer in files for analysts. It follows from nothing, so it leads back to nobody; autoincrement: it never
    -- stands for another customer.
    seq integer primary key autoincrement,
    -- As in feedback_events: the experiment and its arm.
    arm text not null,
    -- Erasing the customer erases the row.
    customer_id text not null,
    -- Completions of which a suggestion was shown, and the suggestions; the rest as in feedback_counts, by ticket or soon after.
    completions integer not null default 0,
    shown integer not null default 0,
    accepted integer not null default 0,
    bought integer not null default 0,
    returned integer not null default 0,
    kept integer not null default 0,
    revenue integer not null default 0,
    constraint experiment_customers_key_unique unique (arm, customer_id),
    constraint experiment_customers_customer_known foreign key (customer_id) references customers (id) on delete cascade
) strict;

create index experiment_customers_by_customer on experiment_customers (customer_id);
