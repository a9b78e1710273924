-- Who may do what: people with sessions, programs with keys, and what either changed.
--
-- migrations/postgres/ says the same for Postgres; the reasons stand here once. Times are milliseconds
-- since 1970, bound by the program, so that one clock rules and both databases store the same. JSON is
-- text: its meaning is the program's, and no statement looks inside. Tables are strict, because SQLite
-- would otherwise take any type in any column. Constraints have names, by which a violated one becomes
-- an answer that a client understands.

create table people (
    id integer primary key autoincrement,
    -- As the person writes it, and folded: "Ada" and "ada" are one account, so nobody can pass for
    -- somebody else by a capital.
    name text not null,
    name_key text not null,
    role text not null,
    -- argon2id's own text form. Null until a password is set: the person signs in by a one-time link.
    password_hash text,
    created_at integer not null,
    -- Accounts are disabled, never deleted: the audit log keeps naming them.
    disabled_at integer,
    constraint people_name_unique unique (name_key),
    constraint people_role_valid check (role in ('stylist', 'analyst', 'admin'))
) strict;

create table sessions (
    -- SHA-256 of the cookie's token: who reads this table cannot sign in with it.
    token_hash blob not null,
    person_id integer not null,
    created_at integer not null,
    expires_at integer not null,
    last_seen_at integer not null,
    constraint sessions_token_unique primary key (token_hash),
    constraint sessions_person_known foreign key (person_id) references people (id) on delete cascade
) strict;

-- A new password ends the person's sessions.
create index sessions_by_person on sessions (person_id);
-- Expired ones are swept now and then.
create index sessions_by_expiry on sessions (expires_at);

create table api_keys (
    id integer primary key autoincrement,
    -- SHA-256 of the key: shown once, stored hashed. Keys are long and random, so a fast hash is safe.
    token_hash blob not null,
    label text not null,
    -- A JSON array of texts.
    scopes text not null,
    created_at integer not null,
    expires_at integer,
    last_used_at integer,
    -- Revoked, never deleted: the audit log keeps naming them.
    revoked_at integer,
    constraint api_keys_token_unique unique (token_hash)
) strict;

create table audit_log (
    seq integer primary key autoincrement,
    at integer not null,
    -- At most one of the two; neither when the service itself acted.
    person_id integer,
    key_id integer,
    action text not null,
    subject text not null,
    -- A JSON object.
    details text not null,
    -- The customer whom the entry is about, if it is about one, said by whoever wrote it: subject and
    -- details are free text, in which nobody can look a person up for certain. No foreign key, because
    -- the entry may come after the customer is gone.
    customer_id text,
    constraint audit_log_person_known foreign key (person_id) references people (id),
    constraint audit_log_key_known foreign key (key_id) references api_keys (id),
    constraint audit_log_actor_valid check (person_id is null or key_id is null)
) strict;

-- Erasing a customer must find the entries about them; most entries are about nobody.
create index audit_log_by_customer on audit_log (customer_id) where customer_id is not null;

-- Append-only, held by the database: no entry goes, and of one that stays only subject, details and
-- customer may be blanked, when that customer is erased.
create trigger audit_log_keeps_entries before delete on audit_log
begin
    select raise(abort, 'audit_log is append-only');
end;
create trigger audit_log_keeps_facts before update of seq, at, person_id, key_id, action on audit_log
begin
    select raise(abort, 'audit_log is append-only');
end;
