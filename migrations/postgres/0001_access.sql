-- Who may do what: people with sessions, programs with keys, and what either changed.
--
-- migrations/sqlite/0001_access.sql gives the reason for each column and index. Here is only what
-- Postgres needs otherwise: collate "C" wherever text is ordered or compared, so that it sorts by its
-- bytes as in SQLite, whatever the server's locale; and identity columns.

create table people (
    id bigint generated always as identity primary key,
    name text collate "C" not null,
    name_key text collate "C" not null,
    role text collate "C" not null,
    password_hash text,
    created_at bigint not null,
    disabled_at bigint,
    constraint people_name_unique unique (name_key),
    constraint people_role_valid check (role in ('stylist', 'analyst', 'admin'))
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

create table api_keys (
    id bigint generated always as identity primary key,
    token_hash bytea not null,
    label text collate "C" not null,
    scopes text not null,
    created_at bigint not null,
    expires_at bigint,
    last_used_at bigint,
    revoked_at bigint,
    constraint api_keys_token_unique unique (token_hash)
);

create table audit_log (
    seq bigint generated always as identity primary key,
    at bigint not null,
    person_id bigint,
    key_id bigint,
    action text collate "C" not null,
    subject text collate "C" not null,
    details text collate "C" not null,
    customer_id text collate "C",
    constraint audit_log_person_known foreign key (person_id) references people (id),
    constraint audit_log_key_known foreign key (key_id) references api_keys (id),
    constraint audit_log_actor_valid check (person_id is null or key_id is null)
);

create index audit_log_by_customer on audit_log (customer_id) where customer_id is not null;

create function audit_log_is_append_only() returns trigger language plpgsql as $$
begin
    raise exception 'audit_log is append-only';
end
$$;
create trigger audit_log_keeps_entries before delete or truncate on audit_log
    for each statement execute function audit_log_is_append_only();
create trigger audit_log_keeps_facts before update of seq, at, person_id, key_id, action on audit_log
    for each statement execute function audit_log_is_append_only();
