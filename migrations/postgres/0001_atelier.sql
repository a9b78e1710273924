-- The tables of migrations/sqlite/0001_atelier.sql, which gives the reason for each table, column and index. Here is only what
-- Postgres needs otherwise: `collate "C"` wherever text is ordered or compared, so that it sorts by its bytes as in SQLite,
-- whatever the server's locale; and identity columns.

-- ## People and programs

create table people (
    id bigint generated always as identity primary key,
    name text collate "C" not null,
    name_key text collate "C" not null,
    role text collate "C" not null,
    password_hash text,
    created_at bigint not null,
    signed_in_at bigint,
    disabled_at bigint,
    constraint people_name_unique unique (name_key),
    constraint people_role_valid check (role in ('stylist', 'analyst', 'merchandiser', 'admin'))
);

create table sessions (
    token_hash bytea not null,
    person_id bigint not null,
    created_at bigint not null,
    expires_at bigint not null,
    last_seen_at bigint not null,
    constraint sessions_token_unique primary key (token_hash),
    constraint sessions_person_known foreign key (person_id) references people (id) on delete cascade
);

create index sessions_by_person on sessions (person_id);
create index sessions_by_expiry on sessions (expires_at);

create table sign_in_links (
    token_hash bytea not null,
    person_id bigint not null,
    created_at bigint not null,
    expires_at bigint not null,
    constraint sign_in_links_token_unique primary key (token_hash),
    constraint sign_in_links_person_unique unique (person_id),
    constraint sign_in_links_person_known foreign key (person_id) references people (id) on delete cascade
);

create table api_keys (
    id bigint generated always as identity primary key,
    token_hash bytea not null,
    label text collate "C" not null,
    scopes text not null,
    created_at bigint not null,
    expires_at bigint,
    last_used_at bigint,
    revoked_at bigint,
    origins text,
    signing_secret text,
    constraint api_keys_token_unique unique (token_hash),
    constraint api_keys_publishable_whole check ((origins is null) = (signing_secret is null))
);

create table audit_log (
    seq bigint generated always as identity primary key,
    at bigint not null,
    person_id bigint,
    key_id bigint,
    peer text collate "C",
    action text collate "C" not null,
    subject text collate "C" not null,
    details text collate "C" not null,
    customer_id text collate "C",
    constraint audit_log_person_known foreign key (person_id) references people (id),
    constraint audit_log_key_known foreign key (key_id) references api_keys (id),
    constraint audit_log_actor_valid check (person_id is null or key_id is null)
);

create index audit_log_by_rule on audit_log (subject, seq) where action in ('rule.put', 'rule.delete');
create index audit_log_by_customer on audit_log (customer_id) where customer_id is not null;
create index audit_log_by_outfit on audit_log (subject) where customer_id is null and substr(action, 1, 7) = 'outfit.';

create function audit_log_is_append_only() returns trigger language plpgsql as $$
begin
    raise exception 'audit_log is append-only';
end
$$;
create trigger audit_log_keeps_entries before delete or truncate on audit_log
    for each statement execute function audit_log_is_append_only();
create trigger audit_log_keeps_facts before update of seq, at, person_id, key_id, peer, action on audit_log
    for each statement execute function audit_log_is_append_only();

-- ## What replicas share

create table settings (
    name text collate "C" not null,
    value text not null,
    constraint settings_name_unique primary key (name)
);

create table revisions (
    name text collate "C" not null,
    value bigint not null,
    constraint revisions_name_unique primary key (name)
);

insert into revisions (name, value) values ('articles', 0), ('settings', 0), ('looks', 0), ('erasures', 0), ('imports', 2), ('latest_import', 0);
insert into revisions (name, value) values ('catalogue_bytes', 0), ('catalogue_articles', 0), ('catalogues', 1), ('row_bytes', 2000);

create table article_changes (
    revision bigint not null,
    article_id text collate "C" not null,
    constraint article_changes_unique primary key (revision, article_id)
);

-- ## Imports

create view running_import as select value as number from revisions where name = 'imports';

create table import_skips (
    row_hash text collate "C" not null,
    constraint import_skips_row_unique primary key (row_hash)
);

create table undoable_imports (
    number bigint not null,
    import_id bigint,
    ended_at bigint not null,
    constraint undoable_imports_number_unique primary key (number)
);

create table imports (
    id bigint generated always as identity primary key,
    feed text collate "C" not null,
    table_name text collate "C" not null,
    options text not null,
    person_id bigint,
    key_id bigint,
    state text collate "C" not null,
    created_at bigint not null,
    started_at bigint,
    ended_at bigint,
    seen_at bigint not null,
    cancelled bigint not null default 0,
    read bigint not null default 0,
    total bigint not null,
    result text,
    constraint imports_person_known foreign key (person_id) references people (id),
    constraint imports_key_known foreign key (key_id) references api_keys (id),
    constraint imports_state_valid
        check (state in ('waiting', 'running', 'done', 'undone', 'unchanged', 'failed', 'cancelled', 'interrupted'))
);

create table feeds (
    name text collate "C" not null,
    body text not null,
    revision bigint not null default 1,
    created_at bigint not null,
    state text,
    lease_holder text,
    leased_until bigint,
    constraint feeds_name_unique primary key (name)
);

create table rules (
    name text collate "C" not null,
    body text not null,
    revision bigint not null default 1,
    created_at bigint not null,
    constraint rules_name_unique primary key (name)
);

create table looks (
    name text collate "C" not null,
    body text not null,
    revision bigint not null default 1,
    created_at bigint not null,
    constraint looks_name_unique primary key (name)
);

create table experiments (
    name text collate "C" not null,
    body text collate "C" not null,
    revision bigint not null default 1,
    created_at bigint not null,
    constraint experiments_name_unique primary key (name)
);

-- ## The catalogue and the customers

create table articles (
    id text collate "C" not null,
    type text collate "C" not null,
    attributes text not null,
    name_key text collate "C" not null,
    memory bigint not null,
    revision bigint not null default 1,
    created_at bigint not null,
    import bigint not null default 0,
    old_type text collate "C",
    old_attributes text,
    old_name_key text collate "C",
    old_memory bigint,
    constraint articles_id_unique primary key (id)
);

create table customers (
    id text collate "C" not null,
    features text not null,
    name_key text collate "C" not null,
    revision bigint not null default 1,
    created_at bigint not null,
    updated_at bigint not null,
    import bigint not null default 0,
    old_features text,
    old_name_key text collate "C",
    old_updated_at bigint,
    constraint customers_id_unique primary key (id)
);

create table variants (
    id text collate "C" not null,
    article_id text collate "C" not null,
    is_old bigint not null default 0,
    constraint variants_unique primary key (id, article_id)
);

create index variants_by_article on variants (article_id);

create function articles_keep_variants() returns trigger language plpgsql as $$
begin
    if tg_op <> 'INSERT' then
        delete from variants where article_id = old.id;
    end if;
    if tg_op <> 'DELETE' then
        insert into variants (id, article_id, is_old)
        select variant.id #>> '{}', new.id, min(kept.is_old)
        from (values (new.attributes, case when new.type = '' then 1 else 0 end), (new.old_attributes, 1)) as kept (attributes, is_old),
            jsonb_path_query(kept.attributes::jsonb, '$.variants[*].id ? (@.type() == "string")') as variant (id)
        group by variant.id #>> '{}';
    end if;
    return null;
end
$$;
create trigger articles_add_variants after insert on articles
    for each row when (position('"variants"' in new.attributes) > 0) execute function articles_keep_variants();
create trigger articles_change_variants after update of attributes, old_attributes on articles
    for each row when (position('"variants"' in old.attributes || coalesce(old.old_attributes, '') || new.attributes) > 0)
    execute function articles_keep_variants();
create trigger articles_remove_variants after delete on articles
    for each row execute function articles_keep_variants();

-- Once for a statement: an import's would otherwise write the sums once for each of its rows.
create function articles_sum_memory() returns trigger language plpgsql as $$
declare
    bytes bigint := 0;
    articles bigint := 0;
begin
    if tg_op <> 'DELETE' then
        select coalesce(sum(memory), 0), count(*) filter (where memory > 0) into bytes, articles from new_rows;
    end if;
    if tg_op <> 'INSERT' then
        select bytes - coalesce(sum(memory), 0), articles - count(*) filter (where memory > 0) into bytes, articles
        from old_rows;
    end if;
    if bytes <> 0 or articles <> 0 then
        update revisions set value = value + bytes where name = 'catalogue_bytes';
        update revisions set value = value + articles where name = 'catalogue_articles';
    end if;
    return null;
end
$$;
create trigger articles_add_memory after insert on articles
    referencing new table as new_rows for each statement execute function articles_sum_memory();
create trigger articles_change_memory after update on articles
    referencing old table as old_rows new table as new_rows for each statement execute function articles_sum_memory();
create trigger articles_remove_memory after delete on articles
    referencing old table as old_rows for each statement execute function articles_sum_memory();

create index articles_replaced on articles (import, id) where old_type is not null;
create index customers_replaced on customers (import, id) where old_features is not null;
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

create index customers_by_age on customers (created_at, id);

create table customer_notes (
    id bigint generated always as identity primary key,
    customer_id text collate "C" not null,
    person_id bigint not null,
    note text collate "C" not null,
    at bigint not null,
    constraint customer_notes_customer_known
        foreign key (customer_id) references customers (id) on delete cascade,
    constraint customer_notes_person_known foreign key (person_id) references people (id)
);

create index customer_notes_by_customer on customer_notes (customer_id, id);

-- ## Outfits

create table outfits (
    seq bigint generated always as identity primary key,
    digest bytea not null,
    customer_id text collate "C",
    articles text not null,
    split text collate "C" not null,
    features text not null,
    origin text collate "C" not null,
    person_id bigint,
    name text collate "C" not null default '',
    note text collate "C" not null default '',
    name_key text collate "C" not null,
    draft bigint not null,
    suggested text not null default '{}',
    revision bigint not null default 1,
    created_at bigint not null,
    changed_at bigint not null,
    deleted_at bigint,
    link_hash bytea,
    link_expires_at bigint,
    message text collate "C" not null default '',
    replies text not null default '[]',
    replied_at bigint,
    pieces text not null default '[]',
    import bigint not null default 0,
    old_split text collate "C",
    constraint outfits_digest_unique unique (digest),
    constraint outfits_customer_known foreign key (customer_id) references customers (id) on delete cascade,
    constraint outfits_person_known foreign key (person_id) references people (id),
    constraint outfits_customer_or_draft check (customer_id is not null or draft = 1),
    constraint outfits_split_valid check (split in ('', 'train', 'validation')),
    constraint outfits_origin_valid check (origin in ('imported', 'saved'))
);

create index outfits_by_customer on outfits (customer_id, seq);
create index outfits_saved on outfits (changed_at, seq) where origin <> 'imported';
create index outfits_saved_for on outfits (customer_id, created_at) where origin <> 'imported';
create index outfits_deleted on outfits (deleted_at) where deleted_at is not null;
create unique index outfits_link_unique on outfits (link_hash) where link_hash is not null;
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

create table feedback_events (
    key_hash bytea not null,
    suggestion bytea,
    kind text collate "C" not null,
    completion_id text collate "C" not null,
    slot bigint not null,
    article_id text collate "C" not null,
    rank bigint not null,
    release text collate "C" not null,
    method text collate "C" not null,
    arm text collate "C",
    customer_id text collate "C",
    at bigint not null,
    shown_day bigint,
    counts_id bigint,
    withdrawn_at bigint,
    reason text collate "C",
    rules bytea,
    constraint feedback_events_key_unique primary key (key_hash),
    constraint feedback_events_suggestion_unique unique (suggestion, kind),
    constraint feedback_events_customer_known
        foreign key (customer_id) references customers (id) on delete set null,
    constraint feedback_events_kind_valid check (kind in ('shown', 'accepted', 'rejected', 'bought', 'returned', 'kept'))
);

create index feedback_events_by_completion on feedback_events (completion_id);
create index feedback_events_by_customer on feedback_events (customer_id, shown_day, kind)
    where customer_id is not null;
create index feedback_events_refused on feedback_events (customer_id, at)
    where kind = 'rejected' and customer_id is not null;
create index feedback_events_reasons on feedback_events (shown_day, reason) where reason is not null;

create table feedback_counts (
    id bigint generated always as identity primary key,
    shown_day bigint not null,
    release text collate "C" not null,
    method text collate "C" not null,
    arm text collate "C" not null,
    article_type text collate "C" not null,
    is_new bigint not null,
    slot bigint not null,
    source text collate "C" not null,
    shown bigint not null,
    accepted bigint not null default 0,
    rejected bigint not null default 0,
    bought bigint not null default 0,
    returned bigint not null default 0,
    kept bigint not null default 0,
    revenue bigint not null default 0,
    window_bought bigint not null default 0,
    window_returned bigint not null default 0,
    window_kept bigint not null default 0,
    window_revenue bigint not null default 0,
    constraint feedback_counts_key_unique unique (shown_day, release, method, arm, article_type, is_new, slot, source)
);

create table events (
    seq bigint generated always as identity primary key,
    id_hash bytea not null,
    kind text collate "C" not null,
    customer_id text collate "C",
    visitor_hash bytea,
    article_id text collate "C" not null,
    order_id text collate "C",
    value bigint,
    at bigint not null,
    attribution text collate "C",
    suggestion bytea,
    shown_day bigint,
    counts_id bigint,
    revenue bigint,
    constraint events_id_unique unique (id_hash),
    constraint events_customer_known foreign key (customer_id) references customers (id) on delete cascade,
    constraint events_kind_valid check (kind in ('shown', 'accepted', 'rejected', 'bought', 'returned', 'kept')),
    constraint events_attribution_valid check (attribution in ('ticket', 'window'))
);

create index events_by_customer on events (customer_id, shown_day) where customer_id is not null;
create index events_by_visitor on events (visitor_hash, at) where visitor_hash is not null;
create index events_by_order on events (order_id) where order_id is not null;
create index events_by_suggestion on events (suggestion) where suggestion is not null;
create index events_by_time on events (at);

create table event_counts (
    day bigint not null,
    kind text collate "C" not null,
    events bigint not null,
    value bigint not null,
    constraint event_counts_key_unique primary key (day, kind)
);

create table purchases (
    customer_id text collate "C" not null,
    article_id text collate "C" not null,
    bought bigint not null,
    returned bigint not null,
    at bigint not null,
    constraint purchases_unique primary key (customer_id, article_id),
    constraint purchases_customer_known foreign key (customer_id) references customers (id) on delete cascade
);

create table rule_counts (
    rule bytea not null,
    shown_day bigint not null,
    held_out bigint not null,
    shown bigint not null default 0,
    accepted bigint not null default 0,
    rejected bigint not null default 0,
    bought bigint not null default 0,
    returned bigint not null default 0,
    kept bigint not null default 0,
    constraint rule_counts_key_unique primary key (rule, shown_day, held_out)
);

create table experiment_customers (
    seq bigint generated always as identity primary key,
    arm text collate "C" not null,
    customer_id text collate "C" not null,
    completions bigint not null default 0,
    shown bigint not null default 0,
    accepted bigint not null default 0,
    bought bigint not null default 0,
    returned bigint not null default 0,
    kept bigint not null default 0,
    revenue bigint not null default 0,
    constraint experiment_customers_key_unique unique (arm, customer_id),
    constraint experiment_customers_customer_known foreign key (customer_id) references customers (id) on delete cascade
);

create index experiment_customers_by_customer on experiment_customers (customer_id);
